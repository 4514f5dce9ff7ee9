package dev.weft.gemm.code;

/**
 * Writes the instructions of x86_64 that kernels use. Registers are numbers: general ones as the
 * constants name them, of 64 bits, vector registers 0 to 15 of 256 bits (AVX2 and FMA) or 0 to 31
 * of 512 bits (AVX-512F), depending on the assembler's width, and tile registers 0 to 7 (AMX);
 * methods for four floats use the first 128 bits of registers 0 to 15. Memory is a base register
 * and an offset in bytes. For one thread.
 */
class X86Assembler extends Assembler {

    public static final int RAX = 0;
    public static final int RCX = 1;
    public static final int RDX = 2;
    public static final int RBX = 3;
    public static final int RSP = 4;
    public static final int RBP = 5;
    public static final int RSI = 6;
    public static final int RDI = 7;
    public static final int R8 = 8;
    public static final int R9 = 9;
    public static final int R10 = 10;
    public static final int R11 = 11;
    public static final int R12 = 12;
    public static final int R13 = 13;
    public static final int R14 = 14;
    public static final int R15 = 15;

    /** When a branch is taken; the number is the condition's in the instruction. */
    public enum Condition {
        E(4),
        NE(5),
        L(12),
        GE(13),
        LE(14),
        G(15);

        private final int code;

        Condition(int code) {
            this.code = code;
        }
    }

    // Prefixes that VEX and EVEX hold as two bits, and maps of opcodes.
    private static final int NONE = 0;
    private static final int P66 = 1;
    private static final int PF3 = 2;
    private static final int PF2 = 3;
    private static final int MAP_0F = 1;
    private static final int MAP_0F38 = 2;
    private static final int MAP_0F3A = 3;

    private static final int FMADD231 = 0xB8;
    private static final int BROADCAST = 1 << 4;
    private static final int ZERO_OTHERS = 1 << 7;

    /** EVEX.W: words instead of bytes, or doubles instead of floats. */
    private static final int WORDS = 1 << 7;

    private static final int TILE_CONFIG = 0x49;
    private static final int TILE_MEMORY = 0x4B;
    private static final int VECTOR = 64;

    private final boolean wide;

    /** For vectors of 256 or 512 bits. */
    public X86Assembler(int vectorBits) {
        if (vectorBits != 256 && vectorBits != 512) {
            throw new IllegalArgumentException(
                    "vectors of " + vectorBits + " bits: expected 256 or 512");
        }
        this.wide = vectorBits == 512;
    }

    final int vectorBytes() {
        return wide ? VECTOR : VECTOR / 2;
    }

    // Vectors.

    public void vmovups(int d, int base, int offset) {
        vectorMemory(MAP_0F, NONE, 0x10, d, 0, base, offset, VECTOR);
    }

    public void vmovupsStore(int base, int offset, int s) {
        vectorMemory(MAP_0F, NONE, 0x11, s, 0, base, offset, VECTOR);
    }

    /** d = the float in memory, in every lane. */
    public void vbroadcastss(int d, int base, int offset) {
        vectorMemory(MAP_0F38, P66, 0x18, d, 0, base, offset, Float.BYTES);
    }

    /** d = as many fp16 in memory as there are lanes, as floats. */
    public void vcvtph2ps(int d, int base, int offset) {
        vectorMemory(MAP_0F38, P66, 0x13, d, 0, base, offset, VECTOR / 2);
    }

    /** d = as many 16-bit values in memory as there are lanes, each in the lower half of one. */
    public void vpmovzxwd(int d, int base, int offset) {
        vectorMemory(MAP_0F38, P66, 0x33, d, 0, base, offset, VECTOR / 2);
    }

    /** d = s with each lane shifted to the left. */
    public void vpslld(int d, int s, int bits) {
        int operation = 6;
        vectorRegisters(MAP_0F, P66, 0x72, operation, d, s);
        put(inRange("bits", bits, 0, 31));
    }

    /** d += n x m, lane by lane, each rounded once. */
    public void vfmadd231ps(int d, int n, int m) {
        vectorRegisters(MAP_0F38, P66, FMADD231, d, n, m);
    }

    /** d += n x the one float in memory; 512 bits only. */
    public void vfmadd231psBroadcast(int d, int n, int base, int offset) {
        broadcastOperand(MAP_0F38, P66, FMADD231, d, n, base, offset);
    }

    /** d = +0 in every lane. */
    public void zero(int d) {
        if (wide) {
            vectorRegisters(MAP_0F, P66, 0xEF, d, d, d);
        } else {
            vectorRegisters(MAP_0F, NONE, 0x57, d, d, d);
        }
    }

    /** Ends the use of long vectors, as the callers of a function expect. */
    public void vzeroupper() {
        vex(MAP_0F, NONE, 0, 0, 0, false);
        put(0x77);
    }

    /** In each 128 bits, d = n0 m0 n1 m1, floats. */
    public void vunpcklps(int d, int n, int m) {
        vectorRegisters(MAP_0F, NONE, 0x14, d, n, m);
    }

    /** In each 128 bits, d = n2 m2 n3 m3, floats. */
    public void vunpckhps(int d, int n, int m) {
        vectorRegisters(MAP_0F, NONE, 0x15, d, n, m);
    }

    /** In each 128 bits, d = the lower halves of n and m. */
    public void vunpcklpd(int d, int n, int m) {
        vectorRegisters(MAP_0F, ofDoubles(), 0x14, d, n, m);
    }

    /** In each 128 bits, d = the upper halves of n and m. */
    public void vunpckhpd(int d, int n, int m) {
        vectorRegisters(MAP_0F, ofDoubles(), 0x15, d, n, m);
    }

    /** d = two of the halves of n and m, 4 bits of {@code choice} for each; 256 bits only. */
    public void vperm2f128(int d, int n, int m, int choice) {
        only256("vperm2f128");
        vectorRegisters(MAP_0F3A, P66, 0x06, d, n, m);
        put(inRange("choice", choice, 0, 255));
    }

    /** d = two quarters of n and two of m, 2 bits of {@code choice} for each; 512 bits only. */
    public void vshuff32x4(int d, int n, int m, int choice) {
        only512("vshuff32x4");
        vectorRegisters(MAP_0F3A, P66, 0x23, d, n, m);
        put(inRange("choice", choice, 0, 255));
    }

    // Doubles.

    /** d = as many floats in memory as there are lanes of doubles. */
    public void vcvtps2pd(int d, int base, int offset) {
        vectorMemory(MAP_0F, NONE, 0x5A, d, 0, base, offset, VECTOR / 2);
    }

    /** d = the floats of the first half of s. */
    public void vcvtps2pd(int d, int s) {
        vectorRegisters(MAP_0F, NONE, 0x5A, d, 0, s);
    }

    /** The first half of d = the doubles of s as floats. */
    public void vcvtpd2ps(int d, int s) {
        vectorRegisters(MAP_0F, ofDoubles(), 0x5A, d, 0, s);
    }

    /** Stores the first half of s, a register of 0 to 15. */
    public void storeHalf(int base, int offset, int s) {
        vex(MAP_0F, NONE, first16(s), 0, general(base) >> 3, wide);
        put(0x11);
        memory(s, base, offset, 1);
    }

    public void vaddpd(int d, int n, int m) {
        vectorRegisters(MAP_0F, ofDoubles(), 0x58, d, n, m);
    }

    public void vmulpd(int d, int n, int m) {
        vectorRegisters(MAP_0F, ofDoubles(), 0x59, d, n, m);
    }

    /** d = n x the vector in memory. */
    public void vmulpd(int d, int n, int base, int offset) {
        vectorMemory(MAP_0F, ofDoubles(), 0x59, d, n, base, offset, VECTOR);
    }

    /** d = n - m. */
    public void vsubpd(int d, int n, int m) {
        vectorRegisters(MAP_0F, ofDoubles(), 0x5C, d, n, m);
    }

    /** d = the smaller of n and m, lane by lane; m's if one is NaN or both are zero. */
    public void vminpd(int d, int n, int m) {
        vectorRegisters(MAP_0F, ofDoubles(), 0x5D, d, n, m);
    }

    /** d = n / m. */
    public void vdivpd(int d, int n, int m) {
        vectorRegisters(MAP_0F, ofDoubles(), 0x5E, d, n, m);
    }

    /** d = the larger of n and m, lane by lane; m's if one is NaN or both are zero. */
    public void vmaxpd(int d, int n, int m) {
        vectorRegisters(MAP_0F, ofDoubles(), 0x5F, d, n, m);
    }

    /** d += n x m, lane by lane, each rounded once. */
    public void vfmadd231pd(int d, int n, int m) {
        vectorRegisters(MAP_0F38, P66 | WORDS, FMADD231, d, n, m);
    }

    /** d = d x n + the vector in memory, lane by lane, each rounded once. */
    public void vfmadd213pd(int d, int n, int base, int offset) {
        vectorMemory(MAP_0F38, P66 | WORDS, 0xA8, d, n, base, offset, VECTOR);
    }

    /** d = n + the vector in memory, lanes of 64 bits. */
    public void vpaddq(int d, int n, int base, int offset) {
        vectorMemory(MAP_0F, ofDoubles(), 0xD4, d, n, base, offset, VECTOR);
    }

    /** d = s with each lane of 64 bits shifted to the left. */
    public void vpsllq(int d, int s, int bits) {
        int operation = 6;
        vectorRegisters(MAP_0F, ofDoubles(), 0x73, operation, d, s);
        put(inRange("bits", bits, 0, 63));
    }

    /** d = s with each lane of 64 bits shifted to the right. */
    public void vpsrlq(int d, int s, int bits) {
        int operation = 2;
        vectorRegisters(MAP_0F, ofDoubles(), 0x73, operation, d, s);
        put(inRange("bits", bits, 0, 63));
    }

    /** Only the longer prefix of 512 bits has the size of a lane. */
    private int ofDoubles() {
        return wide ? P66 | WORDS : P66;
    }

    // Whole numbers in vectors: methods named by bytes or words treat their vectors as such.

    /** d += for each lane the four unsigned bytes of n x the four signed ones in memory. */
    public void vpdpbusdBroadcast(int d, int n, int base, int offset) {
        broadcastOperand(MAP_0F38, P66, 0x50, d, n, base, offset);
    }

    /**
     * d += for each lane the four unsigned bytes of n x the four signed ones of m; 256 bits only.
     */
    public void vpdpbusd(int d, int n, int m) {
        only256("vpdpbusd with registers");
        vectorRegisters(MAP_0F38, P66, 0x50, d, n, m);
    }

    /** d = n x the one float in memory; 512 bits only. */
    public void vmulpsBroadcast(int d, int n, int base, int offset) {
        broadcastOperand(MAP_0F, NONE, 0x59, d, n, base, offset);
    }

    /** d = the 32 bits in memory, in every lane. */
    public void vpbroadcastd(int d, int base, int offset) {
        vectorMemory(MAP_0F38, P66, 0x58, d, 0, base, offset, Float.BYTES);
    }

    public void vmulps(int d, int n, int m) {
        vectorRegisters(MAP_0F, NONE, 0x59, d, n, m);
    }

    /** d = the whole numbers of s as floats. */
    public void vcvtdq2ps(int d, int s) {
        vectorRegisters(MAP_0F, NONE, 0x5B, d, 0, s);
    }

    /** d = the whole numbers in memory as floats. */
    public void vcvtdq2ps(int d, int base, int offset) {
        vectorMemory(MAP_0F, NONE, 0x5B, d, 0, base, offset, VECTOR);
    }

    /** d = an unsigned byte in memory for each lane. */
    public void vpmovzxbd(int d, int base, int offset) {
        vectorMemory(MAP_0F38, P66, 0x31, d, 0, base, offset, VECTOR / 4);
    }

    /** d = n and m, bit by bit. */
    public void vpand(int d, int n, int m) {
        vectorRegisters(MAP_0F, P66, 0xDB, d, n, m);
    }

    /** d = s with each lane of 32 bits shifted to the right. */
    public void vpsrld(int d, int s, int bits) {
        int operation = 2;
        vectorRegisters(MAP_0F, P66, 0x72, operation, d, s);
        put(inRange("bits", bits, 0, 31));
    }

    public void vpaddd(int d, int n, int m) {
        vectorRegisters(MAP_0F, P66, 0xFE, d, n, m);
    }

    /** d = n - m, bytes. */
    public void vpsubb(int d, int n, int m) {
        vectorRegisters(MAP_0F, P66, 0xF8, d, n, m);
    }

    public void vpaddw(int d, int n, int m) {
        vectorRegisters(MAP_0F, P66, 0xFD, d, n, m);
    }

    /** d = the magnitudes of the bytes of s. */
    public void vpabsb(int d, int s) {
        vectorRegisters(MAP_0F38, P66, 0x1C, d, 0, s);
    }

    /** d = the bytes of n with the signs of those of m, 0 where those are 0; 256 bits only. */
    public void vpsignb(int d, int n, int m) {
        only256("vpsignb");
        vectorRegisters(MAP_0F38, P66, 0x08, d, n, m);
    }

    /** mask = whether the bytes of s are negative; 512 bits only. */
    public void vpmovb2m(int mask, int s) {
        only512("masks");
        evex(MAP_0F38, PF3, mask(mask), 0, s >> 3 & 1, vector(s) >> 4, 0);
        put(0x29);
        put(0xC0 | mask << 3 | s & 7);
    }

    /** Those bytes of d whose bits of the mask are set = those of n less m's; 512 bits only. */
    public void vpsubbMasked(int d, int mask, int n, int m) {
        only512("masks");
        evex(MAP_0F, P66, vector(d), vector(n), m >> 3 & 1, vector(m) >> 4, mask(mask));
        put(0xF8);
        put(0xC0 | (d & 7) << 3 | m & 7);
    }

    /** d = for each word the two unsigned bytes of n x the two signed ones of m, saturated. */
    public void vpmaddubsw(int d, int n, int m) {
        vectorRegisters(MAP_0F38, P66, 0x04, d, n, m);
    }

    /** d = for each lane the two signed words of n x those of m. */
    public void vpmaddwd(int d, int n, int m) {
        vectorRegisters(MAP_0F, P66, 0xF5, d, n, m);
    }

    private void only256(String what) {
        if (wide) {
            throw new IllegalArgumentException("only vectors of 256 bits have " + what);
        }
    }

    private void only512(String what) {
        if (!wide) {
            throw new IllegalArgumentException("only vectors of 512 bits have " + what);
        }
    }

    private void broadcastOperand(
            int map, int prefix, int opcode, int d, int n, int base, int offset) {
        only512("an operand to broadcast");
        evex(map, prefix, vector(d), vector(n), general(base) >> 3, 0, BROADCAST);
        put(opcode);
        memory(d, base, offset, Float.BYTES);
    }

    // Vectors of 128 bits.

    public void loadFour(int d, int base, int offset) {
        fourInMemory(MAP_0F, NONE, 0x10, d, 0, base, offset);
    }

    public void storeFour(int base, int offset, int s) {
        fourInMemory(MAP_0F, NONE, 0x11, s, 0, base, offset);
    }

    /** Loads one float into lane 0 and clears the others. */
    public void loadOne(int d, int base, int offset) {
        fourInMemory(MAP_0F, PF3, 0x10, d, 0, base, offset);
    }

    public void storeOne(int base, int offset, int s) {
        fourInMemory(MAP_0F, PF3, 0x11, s, 0, base, offset);
    }

    /** d = n with the 16 bits in memory as its part {@code index}, 0 to 7. */
    public void insert16(int d, int n, int base, int offset, int index) {
        fourInMemory(MAP_0F, P66, 0xC4, d, n, base, offset);
        put(inRange("part", index, 0, 7));
    }

    /** d = n0 m0 n1 m1, floats. */
    public void unpackLow(int d, int n, int m) {
        fourInRegisters(MAP_0F, NONE, 0x14, d, n, m);
    }

    /** d = n2 m2 n3 m3, floats. */
    public void unpackHigh(int d, int n, int m) {
        fourInRegisters(MAP_0F, NONE, 0x15, d, n, m);
    }

    /** d = the four fp16 in memory, as floats. */
    public void widenFp16(int d, int base, int offset) {
        fourInMemory(MAP_0F38, P66, 0x13, d, 0, base, offset);
    }

    /** d = the four fp16 in the low half of s, as floats. */
    public void widenFp16(int d, int s) {
        fourInRegisters(MAP_0F38, P66, 0x13, d, 0, s);
    }

    /** d = the four 16-bit values in memory, each in the lower half of its lane. */
    public void widen16(int d, int base, int offset) {
        fourInMemory(MAP_0F38, P66, 0x33, d, 0, base, offset);
    }

    /** d = s with each lane shifted to the left. */
    public void shiftLeft(int d, int s, int bits) {
        int operation = 6;
        fourInRegisters(MAP_0F, P66, 0x72, operation, d, s);
        put(inRange("bits", bits, 0, 31));
    }

    // Tile registers.

    /** Sets up the tile registers from the 64 bytes at a label. */
    public void ldtilecfg(Label config) {
        vex(MAP_0F38, NONE, 0, 0, 0, false);
        put(TILE_CONFIG);
        put(RBP); // without a mode: relative to the next instruction
        distanceTo(config);
    }

    public void tilerelease() {
        vex(MAP_0F38, NONE, 0, 0, 0, false);
        put(TILE_CONFIG);
        put(0xC0);
    }

    public void tilezero(int d) {
        vex(MAP_0F38, PF2, tile(d), 0, 0, false);
        put(TILE_CONFIG);
        put(0xC0 | d << 3);
    }

    /** Loads a tile whose rows begin {@code pitch}, a register, apart. */
    public void tileloadd(int d, int base, int pitch, int offset) {
        tileMemory(PF2, d, base, pitch, offset);
    }

    public void tilestored(int base, int pitch, int offset, int s) {
        tileMemory(PF3, s, base, pitch, offset);
    }

    /** d += n x m; rows of n have pairs of bf16 along k, rows of m are such pairs of columns. */
    public void tdpbf16ps(int d, int n, int m) {
        vex(MAP_0F38, PF3, tile(d), tile(m), 0, false);
        put(0x5C);
        put(0xC0 | d << 3 | tile(n));
    }

    /** d += n x m; rows of n have fours of signed bytes along k, rows of m such of columns. */
    public void tdpbssd(int d, int n, int m) {
        vex(MAP_0F38, PF2, tile(d), tile(m), 0, false);
        put(0x5E);
        put(0xC0 | d << 3 | tile(n));
    }

    private void tileMemory(int prefix, int t, int base, int pitch, int offset) {
        if (general(pitch) == RSP) {
            throw new IllegalArgumentException("the stack pointer is no pitch");
        }
        vex(MAP_0F38, prefix, tile(t), 0, pitch >> 3, general(base) >> 3, false);
        put(TILE_MEMORY);
        int mode = mode(base, offset, 1);
        put(mode << 6 | t << 3 | RSP);
        put((pitch & 7) << 3 | base & 7);
        offset(mode, offset, 1);
    }

    // Masks.

    /** mask = the lower 32 bits of s. */
    public void kmov32(int mask, int s) {
        vex(MAP_0F, PF2, mask(mask), 0, general(s) >> 3, false);
        put(0x92);
        put(0xC0 | mask << 3 | s & 7);
    }

    /** d = the 16-bit values in memory whose bits of the mask are set, 0 for the others. */
    public void loadMasked16(int d, int mask, int base, int offset) {
        only512("masks");
        if (mask(mask) == 0) {
            throw new IllegalArgumentException("mask 0 selects everything: expected 1 to 7");
        }
        int base3 = general(base) >> 3;
        evex(MAP_0F, PF2 | WORDS, vector(d), 0, base3, 0, ZERO_OTHERS | mask);
        put(0x6F);
        memory(d, base, offset, 64);
    }

    /** d = the lowest bits of s, at most 32; the lowest byte of n gives their number. */
    public void bzhi32(int d, int s, int n) {
        vex(MAP_0F38, NONE, general(d), general(n), general(s) >> 3, false);
        put(0xF5);
        put(0xC0 | (d & 7) << 3 | s & 7);
    }

    // General registers.

    /** d = value, its sign extended. */
    public void movImm(int d, int value) {
        rexW(0, d);
        put(0xC7);
        put(0xC0 | d & 7);
        put32(value);
    }

    public void shl(int d, int bits) {
        rexW(0, d);
        put(0xC1);
        put(0xC0 | 4 << 3 | d & 7);
        put(inRange("bits", bits, 0, 63));
    }

    public void andImm(int d, int value) {
        immediate(4, d, value);
    }

    public void mov(int d, int s) {
        twoRegisters(0x89, d, s);
    }

    public void movLoad(int d, int base, int offset) {
        rexW(d, base);
        put(0x8B);
        memory(d, base, offset, 1);
    }

    public void movStore(int base, int offset, int s) {
        rexW(s, base);
        put(0x89);
        memory(s, base, offset, 1);
    }

    public void add(int d, int s) {
        twoRegisters(0x01, d, s);
    }

    public void sub(int d, int s) {
        twoRegisters(0x29, d, s);
    }

    /** Sets the flags by d itself if both are the same. */
    public void test(int d, int s) {
        twoRegisters(0x85, d, s);
    }

    public void addImm(int d, int value) {
        immediate(0, d, value);
    }

    public void subImm(int d, int value) {
        immediate(5, d, value);
    }

    public void cmpImm(int d, int value) {
        immediate(7, d, value);
    }

    /** d = d - 1. */
    public void dec(int d) {
        rexW(0, d);
        put(0xFF);
        put(0xC0 | 1 << 3 | d & 7);
    }

    public void push(int s) {
        if (general(s) > 7) {
            put(0x41);
        }
        put(0x50 | s & 7);
    }

    public void pop(int d) {
        if (general(d) > 7) {
            put(0x41);
        }
        put(0x58 | d & 7);
    }

    /** Prefetches a line into the nearest cache. */
    public void prefetcht0(int base, int offset) {
        if (general(base) > 7) {
            put(0x41);
        }
        put(0x0F);
        put(0x18);
        memory(1, base, offset, 1);
    }

    // Branches, all with distances of 32 bits.

    public void j(Condition condition, Label to) {
        put(0x0F);
        put(0x80 | condition.code);
        distanceTo(to);
    }

    public void ret() {
        put(0xC3);
    }

    @Override
    public void nop() {
        put(0x90);
    }

    /** Bytes that are not instructions. */
    public void data(byte[] bytes) {
        for (byte one : bytes) {
            put(one);
        }
    }

    private void distanceTo(Label label) {
        branchTo(label);
        put32(0);
    }

    /** Distances count from the end of the instruction, which is the end of their four bytes. */
    @Override
    void patch(int distance, int target) {
        write32(distance, target - (distance + Integer.BYTES));
    }

    // Prefixes and operands.

    /**
     * @param unit bytes of the operand with vectors of 512 bits: offsets of 8 bits count in them
     */
    private void vectorMemory(
            int map, int prefix, int opcode, int d, int n, int base, int offset, int unit) {
        int high = general(base) >> 3;
        if (wide) {
            evex(map, prefix, vector(d), vector(n), high, 0, 0);
        } else {
            vex(map, prefix, vector(d), vector(n), high, true);
        }
        put(opcode);
        memory(d, base, offset, wide ? unit : 1);
    }

    private void vectorRegisters(int map, int prefix, int opcode, int d, int n, int m) {
        if (wide) {
            evex(map, prefix, vector(d), vector(n), m >> 3 & 1, vector(m) >> 4, 0);
        } else {
            vex(map, prefix, vector(d), vector(n), vector(m) >> 3, true);
        }
        put(opcode);
        put(0xC0 | (d & 7) << 3 | m & 7);
    }

    private void fourInMemory(int map, int prefix, int opcode, int d, int n, int base, int offset) {
        vex(map, prefix, first16(d), first16(n), general(base) >> 3, false);
        put(opcode);
        memory(d, base, offset, 1);
    }

    private void fourInRegisters(int map, int prefix, int opcode, int d, int n, int m) {
        vex(map, prefix, first16(d), first16(n), first16(m) >> 3, false);
        put(opcode);
        put(0xC0 | (d & 7) << 3 | m & 7);
    }

    private static int first16(int number) {
        return inRange("vector register", number, 0, 15);
    }

    /** Two or three bytes: the upper bits of registers are inverted. */
    private void vex(int map, int prefix, int reg, int n, int baseHigh, boolean bits256) {
        vex(map, prefix, reg, n, 0, baseHigh, bits256);
    }

    private void vex(
            int map, int prefix, int reg, int n, int indexHigh, int baseHigh, boolean bits256) {
        int rest = (~n & 15) << 3 | (bits256 ? 4 : 0) | prefix;
        int regHigh = ~reg >> 3 & 1;
        if (map == MAP_0F && indexHigh == 0 && baseHigh == 0) {
            put(0xC5);
            put(regHigh << 7 | rest);
            return;
        }
        put(0xC4);
        put(regHigh << 7 | (indexHigh ^ 1) << 6 | (baseHigh ^ 1) << 5 | map);
        put(rest);
    }

    /**
     * Four bytes for 512 bits: the upper bits of registers are inverted.
     *
     * @param more bits of the last byte: {@link #BROADCAST}, or a mask
     */
    private void evex(int map, int prefix, int reg, int n, int rmBit3, int rmBit4, int more) {
        put(0x62);
        put(
                (~reg >> 3 & 1) << 7
                        | (rmBit4 ^ 1) << 6
                        | (rmBit3 ^ 1) << 5
                        | (~reg >> 4 & 1) << 4
                        | map);
        put((~n & 15) << 3 | 4 | prefix);
        put(2 << 5 | (~n >> 4 & 1) << 3 | more);
    }

    private void rexW(int reg, int base) {
        put(0x48 | general(reg) >> 3 << 2 | general(base) >> 3);
    }

    private void twoRegisters(int opcode, int d, int s) {
        rexW(s, d);
        put(opcode);
        put(0xC0 | (s & 7) << 3 | d & 7);
    }

    private void immediate(int operation, int d, int value) {
        rexW(0, d);
        boolean small = value == (byte) value;
        put(small ? 0x83 : 0x81);
        put(0xC0 | operation << 3 | d & 7);
        if (small) {
            put(value);
        } else {
            put32(value);
        }
    }

    /** The operand [base + offset]; an offset of 8 bits counts in {@code unit} bytes. */
    private void memory(int reg, int base, int offset, int unit) {
        int mode = mode(base, offset, unit);
        put(mode << 6 | (reg & 7) << 3 | base & 7);
        if ((base & 7) == RSP) {
            put(0x24); // the number means another form of address, which this is the plain case of
        }
        offset(mode, offset, unit);
    }

    private static int mode(int base, int offset, int unit) {
        if (offset == 0 && (base & 7) != RBP) {
            return 0;
        }
        return offset % unit == 0 && offset / unit == (byte) (offset / unit) ? 1 : 2;
    }

    private void offset(int mode, int offset, int unit) {
        if (mode == 1) {
            put(offset / unit);
        } else if (mode == 2) {
            put32(offset);
        }
    }

    private static int tile(int number) {
        return inRange("tile register", number, 0, 7);
    }

    private static int mask(int number) {
        return inRange("mask", number, 0, 7);
    }

    private int vector(int number) {
        return inRange("vector register", number, 0, wide ? 31 : 15);
    }

    private static int general(int number) {
        return inRange("register", number, 0, 15);
    }
}
