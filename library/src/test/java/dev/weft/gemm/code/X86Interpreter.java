package dev.weft.gemm.code;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Objects;

/**
 * Executes just the instructions of {@link X86AmxTiles}, which no emulator that we know has. Each
 * access must lie in one of its pieces of memory; registers that a function keeps must be kept, and
 * tile and long vector registers released.
 */
final class X86Interpreter {

    private static final int RSP = 4;
    private static final int RIP_RELATIVE = 5;
    private static final int[] KEPT = {3, 4, 5, 12, 13, 14, 15};
    private static final int PIECE_BITS = 32;
    private static final int CODE = 4;
    private static final int STACK = 5;
    private static final int MOST_INSTRUCTIONS = 1_000_000;

    private final byte[][] memory;
    private final ByteBuffer code;
    private final long[] registers = new long[16];
    private final int[] masks = new int[8];
    private final byte[][] vectors = new byte[32][64];
    private final byte[][] tiles = new byte[8][1024];
    private boolean tilesConfigured;
    private boolean vectorsUsed;

    /** Of the last operation that sets flags; sums here do not overflow. */
    private long result;

    // Of the instruction at hand: upper bits of registers, and its operands.
    private int regHigh;
    private int indexHigh;
    private int baseHigh;
    private int reg;
    private int rm;
    private boolean inMemory;
    private long address;
    private long index;

    private X86Interpreter(byte[]... memory) {
        this.memory = memory;
        this.code = ByteBuffer.wrap(memory[CODE]).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** C after a call of the function that begins at byte {@code entry} of the code. */
    static byte[] run(byte[] code, int entry, byte[] a, byte[] b, byte[] c, long... arguments) {
        ByteBuffer more =
                ByteBuffer.allocate(arguments.length * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        more.asLongBuffer().put(arguments);
        byte[] written = c.clone();
        new X86Interpreter(a, b, written, more.array(), code, new byte[64]).run(entry);
        return written;
    }

    private void run(int entry) {
        for (int i = 0; i < registers.length; i++) {
            registers[i] = -1L - i;
        }
        int[] parameters = {7, 6, 2, 1};
        for (int i = 0; i < parameters.length; i++) {
            registers[parameters[i]] = at(i);
        }
        registers[RSP] = at(STACK) + memory[STACK].length;
        long[] before = registers.clone();
        code.position(entry);
        int count = 0;
        while (step()) {
            assertFalse(++count > MOST_INSTRUCTIONS, "it does not end");
        }
        for (int i : KEPT) {
            assertEquals(before[i], registers[i], "a register that the caller needs");
        }
        assertFalse(tilesConfigured, "tile registers are not released");
        assertFalse(vectorsUsed, "long vectors are not released");
    }

    private static long at(int piece) {
        return (piece + 1L) << PIECE_BITS;
    }

    /** A piece of memory and where {@code bytes} of it begin, all inside. */
    private ByteBuffer access(long at, int bytes) {
        int piece = (int) (at >> PIECE_BITS) - 1;
        int from = (int) at;
        Objects.checkIndex(piece, memory.length);
        Objects.checkFromIndexSize(from, bytes, memory[piece].length);
        return ByteBuffer.wrap(memory[piece], from, bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Whether to go on. */
    private boolean step() {
        regHigh = 0;
        indexHigh = 0;
        baseHigh = 0;
        int opcode = next();
        if (opcode == 0xC4 || opcode == 0xC5) {
            vex(opcode == 0xC4);
        } else if (opcode == 0x62) {
            evex();
        } else if (opcode == 0x0F) {
            twoBytes(next());
        } else if (opcode >> 4 == 4) {
            regHigh = opcode >> 2 & 1;
            baseHigh = opcode & 1;
            general(next());
        } else if (opcode >> 4 == 5) {
            general(opcode);
        } else if (opcode != 0x90) {
            assertEquals(0xC3, opcode, () -> "unknown opcode before " + code.position());
            return false;
        }
        return true;
    }

    /** A prefetch may lie outside of all memory, and changes nothing. */
    private void twoBytes(int opcode) {
        if (opcode == 0x18) {
            operands(1);
        } else {
            branch(opcode);
        }
    }

    private void general(int opcode) {
        if (opcode == 0x0F) {
            twoBytes(next());
            return;
        }
        if (opcode >> 3 == 0x50 >> 3) {
            int pushed = opcode & 7 | baseHigh << 3;
            registers[RSP] -= Long.BYTES;
            access(registers[RSP], Long.BYTES).putLong(registers[pushed]);
            return;
        }
        if (opcode >> 3 == 0x58 >> 3) {
            registers[opcode & 7 | baseHigh << 3] = access(registers[RSP], Long.BYTES).getLong();
            registers[RSP] += Long.BYTES;
            return;
        }
        operands(1);
        switch (opcode) {
            case 0x01 -> set(registers[rm] + registers[reg]);
            case 0x85 -> result = registers[rm] & registers[reg];
            case 0x89 -> registers[rm] = registers[reg];
            case 0x8B -> registers[reg] = access(address, Long.BYTES).getLong();
            case 0xC1 -> set(registers[rm] << expected(4, next()));
            case 0xC7 -> registers[rm] = code.getInt();
            case 0xFF -> set(registers[rm] - expected(1, 1));
            case 0x81 -> immediate(code.getInt());
            case 0x83 -> immediate(code.get());
            default -> throw unknown(opcode);
        }
    }

    /** {@code value}, where the operation that takes the place of a register is the known one. */
    private int expected(int operation, int value) {
        assertEquals(operation, reg & 7, () -> "unknown operation before " + code.position());
        return value;
    }

    private void immediate(int value) {
        switch (reg & 7) {
            case 0 -> set(registers[rm] + value);
            case 4 -> set(registers[rm] & value);
            case 5 -> set(registers[rm] - value);
            default -> throw unknown(reg);
        }
    }

    private void set(long value) {
        registers[rm] = value;
        result = value;
    }

    private void branch(int opcode) {
        int distance = code.getInt();
        boolean taken =
                switch (opcode) {
                    case 0x84 -> result == 0;
                    case 0x85 -> result != 0;
                    case 0x8C -> result < 0;
                    case 0x8D -> result >= 0;
                    case 0x8E -> result <= 0;
                    case 0x8F -> result > 0;
                    default -> throw unknown(opcode);
                };
        if (taken) {
            code.position(code.position() + distance);
        }
    }

    private void vex(boolean threeBytes) {
        int first = next();
        int map = 1;
        int last = first;
        regHigh = ~first >> 7 & 1;
        if (threeBytes) {
            indexHigh = ~first >> 6 & 1;
            baseHigh = ~first >> 5 & 1;
            map = first & 31;
            last = next();
        }
        int n = ~last >> 3 & 15;
        int kind = map << 12 | (last & 3) << 8 | next();
        if (kind == 0x1077) {
            vectorsUsed = false;
            return;
        }
        operands(1);
        switch (kind) {
            case 0x1392 -> masks[reg] = (int) registers[rm];
            case 0x20F5 -> {
                int bits = (int) registers[n] & 0xFF;
                int value = (int) registers[rm];
                registers[reg] = (bits < 32 ? value & (1 << bits) - 1 : value) & 0xFFFFFFFFL;
            }
            case 0x2049 -> configure();
            case 0x2349 -> Arrays.fill(tile(reg), (byte) 0);
            case 0x234B, 0x224B -> {
                for (int row = 0; row < 16; row++) {
                    ByteBuffer piece = access(address + row * index, 64);
                    if (kind == 0x234B) {
                        piece.get(tile(reg), row * 64, 64);
                    } else {
                        piece.put(tile(reg), row * 64, 64);
                    }
                }
            }
            case 0x225C -> multiply(tile(reg), tile(rm), tile(n));
            default -> throw unknown(kind);
        }
    }

    private void configure() {
        tilesConfigured = inMemory;
        ByteBuffer config = inMemory ? access(address, 64) : ByteBuffer.allocate(0);
        for (int i = 0; inMemory && i < tiles.length; i++) {
            assertEquals(1, config.get(config.position()), "palette");
            assertEquals(64, config.getShort(config.position() + 16 + 2 * i), "bytes of a row");
            assertEquals(16, config.get(config.position() + 48 + i), "rows");
        }
    }

    private byte[] tile(int number) {
        assertEquals(true, tilesConfigured, "tile registers are not set up");
        return tiles[number];
    }

    private static void multiply(byte[] sums, byte[] a, byte[] b) {
        ByteBuffer c = ByteBuffer.wrap(sums).order(ByteOrder.LITTLE_ENDIAN);
        for (int at = 0; at < 1024; at += 4) {
            MemorySegment left = MemorySegment.ofArray(a);
            MemorySegment right = MemorySegment.ofArray(b);
            c.putFloat(at, Bf16Tiles.step(c.getFloat(at), left, at / 64 * 64, right, at % 64));
        }
    }

    private void evex() {
        int first = next();
        int second = next();
        int third = next();
        regHigh = ~first >> 7 & 1 | (~first >> 4 & 1) << 1;
        baseHigh = ~first >> 5 & 1;
        assertEquals(2, third >> 5 & 3, "vectors of 512 bits");
        int kind = (first & 15) << 12 | (second & 0x83) << 8 | next();
        operands(64);
        vectorsUsed = true;
        switch (kind) {
            case 0x1010 -> access(address, 64).get(vectors[reg]);
            case 0x1011 -> access(address, 64).put(vectors[reg]);
            case 0x936F -> {
                assertEquals(4, third >> 5 & 4, "others are zeroed");
                Arrays.fill(vectors[reg], (byte) 0);
                for (int i = 0; i < 32; i++) {
                    if ((masks[third & 7] >> i & 1) == 1) {
                        access(address + i * 2L, 2).get(vectors[reg], i * 2, 2);
                    }
                }
            }
            default -> throw unknown(kind);
        }
    }

    /** Reads what says where the operands are; offsets of 8 bits count in {@code unit} bytes. */
    private void operands(int unit) {
        int modes = next();
        int mode = modes >> 6;
        reg = modes >> 3 & 7 | regHigh << 3;
        rm = modes & 7 | baseHigh << 3;
        inMemory = mode != 3;
        if (!inMemory) {
            return;
        }
        if (mode == 0 && (modes & 7) == RIP_RELATIVE) {
            int distance = code.getInt();
            address = at(CODE) + code.position() + distance;
            return;
        }
        if ((modes & 7) == RSP) {
            int scaled = next();
            rm = scaled & 7 | baseHigh << 3;
            index = registers[scaled >> 3 & 7 | indexHigh << 3];
        }
        address = registers[rm] + (mode == 0 ? 0 : mode == 1 ? code.get() * unit : code.getInt());
    }

    private int next() {
        return code.get() & 0xFF;
    }

    private AssertionError unknown(int opcode) {
        return new AssertionError("unknown: %x before byte %s".formatted(opcode, code.position()));
    }
}
