package dev.weft.cuda.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.weft.cuda.kernel.KernelFamily.Tiling;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.QuantizedMatrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A B in blocks as {@code blocks_gemm.cu} reads it. A unit is 64 columns of C and 64 of K, with
 * {@link BlockType#Q4_K} 256; units that follow along K lie behind each other. First come its
 * numbers, 16 columns of C and 64 of K at a time, in the order in which the lanes of a warp hold
 * them for products of 16 x 16; then the scales of 32 of K; with Q4_K, whose scales are numbers of
 * 6 bits, the scales of these. What B lacks of a unit is zero. Pure.
 */
public final class PackedBlocks {

    private static final int COLS = 64;
    private static final int BLOCK = TileShape.K_BLOCK;

    /** Columns of K with scales of their own. */
    private static final int SCALED = 32;

    /** Bytes of the scales of 64 columns of C and 64 of K. */
    private static final int SCALE_BYTES = COLS * 2 * BLOCK / SCALED;

    private final QuantizedMatrix b;
    private final BlockType type;
    private final MemorySegment packed;
    private final long unitsAlongK;

    private PackedBlocks(QuantizedMatrix b, MemorySegment packed) {
        this.b = b;
        this.type = b.type();
        this.packed = packed;
        this.unitsAlongK = Math.ceilDiv(b.cols(), unitK(type));
    }

    /** Bytes of a B of [{@code n}, {@code k}]. */
    public static long bytes(BlockType type, long n, long k) {
        return Math.ceilDiv(n, COLS) * Math.ceilDiv(k, unitK(type)) * unitBytes(type);
    }

    /** What the kernel's source calls the type: its number in GGUF files. */
    static int format(BlockType type) {
        return switch (type) {
            case Q4_0 -> 2;
            case Q8_0 -> 8;
            case Q4_K -> 12;
            default -> throw new IllegalArgumentException("blocks of " + type.label());
        };
    }

    private static int unitK(BlockType type) {
        return type == BlockType.Q4_K ? type.elements() : BLOCK;
    }

    /** Of 64 columns of C and 64 of K. */
    private static int numberBytes(BlockType type) {
        return COLS * BLOCK / (type == BlockType.Q8_0 ? 1 : 2);
    }

    private static int unitBytes(BlockType type) {
        int ofScales = type == BlockType.Q4_K ? 4 * COLS : 0;
        return unitK(type) / BLOCK * (numberBytes(type) + SCALE_BYTES) + ofScales;
    }

    /** Shared memory of a thread block's stages, and of the sums that its warps exchange. */
    static int sharedBytes(BlockType type, Tiling tiling) {
        int ofA = tiling.rows() * tiling.blockK() * Short.BYTES;
        int ofB = tiling.blockK() / unitK(type) * unitBytes(type);
        int stage = Math.ceilDiv(ofA + ofB, 1024) * 1024;
        int otherParts = tiling.warps() / (COLS / 16) - 1;
        return stage * tiling.stages() + otherParts * tiling.rows() * COLS * Float.BYTES;
    }

    /** A packed copy of [N, K]. */
    public static MemorySegment pack(QuantizedMatrix b, Arena arena) {
        MemorySegment packed = arena.allocate(bytes(b.type(), b.rows(), b.cols()), 16);
        PackedBlocks target = new PackedBlocks(b, packed);
        for (long n = 0; n < b.rows(); n++) {
            for (long k = 0; k < b.cols(); k += b.type().elements()) {
                target.put(n, k);
            }
        }
        return packed;
    }

    /** The unit of a column of C and one of K. */
    private long unit(long n, long k) {
        return (n / COLS * unitsAlongK + k / unitK(type)) * unitBytes(type);
    }

    private void put(long n, long k) {
        long from = b.offset(n, k);
        putScales(n, k, from);
        // The kernel takes numbers of 4 bits as they lie in a block, from 0 on.
        int least = type == BlockType.Q4_0 ? -8 : 0;
        for (int i = 0; i < type.elements(); i++) {
            putNumber(n, k + i, type.number(b.data(), from, i) - least);
        }
    }

    private void putNumber(long n, long k, int number) {
        int col = (int) (n % 16);
        int ofBlock = (int) (k % BLOCK);
        int ofStep = ofBlock % 16;
        int lane = col % 8 * 4 + ofStep % 8 / 2;
        // Of the four registers of a lane, each with two neighbours along K.
        int register = col / 8 + ofStep / 8 * 2;
        long numbers = numberBytes(type) / (COLS / 16);
        long at =
                unit(n, k)
                        + k % unitK(type) / BLOCK * numberBytes(type)
                        + n % COLS / 16 * numbers
                        + lane * 16L;
        if (type == BlockType.Q8_0) {
            at += ofBlock / 32 * 512 + ofBlock % 32 / 16 * 8 + register * 2 + ofStep % 2;
            packed.set(JAVA_BYTE, at, (byte) number);
        } else {
            // Neighbours are 16 bits apart, so that one mask takes both.
            int half = register + ofStep % 2 * 4;
            at += ofBlock / 16 * 4 + half / 2;
            int shifted = number << half % 2 * 4;
            packed.set(JAVA_BYTE, at, (byte) (packed.get(JAVA_BYTE, at) | shifted));
        }
    }

    /** Of a block of 64 of K and a pair of columns, of which this is one; 8 are between the two. */
    private long scales(long n, long k) {
        return unit(n, k)
                + (long) unitK(type) / BLOCK * numberBytes(type)
                + k % unitK(type) / SCALED * (SCALE_BYTES / 2)
                + pair(n) * 4;
    }

    private static long pair(long n) {
        return n % COLS / 16 * 8 + n % 8;
    }

    private static long ofPair(long n) {
        return n % 16 / 8;
    }

    private void putScales(long n, long k, long from) {
        short scale = b.data().get(JAVA_SHORT_UNALIGNED, from);
        if (type != BlockType.Q4_K) {
            packed.set(JAVA_SHORT_UNALIGNED, scales(n, k) + ofPair(n) * 2, scale);
            return;
        }
        short offset = b.data().get(JAVA_SHORT_UNALIGNED, from + 2);
        long ofScales = unit(n, k) + unitBytes(type) - 4 * COLS + pair(n) * 8 + ofPair(n) * 2;
        packed.set(JAVA_SHORT_UNALIGNED, ofScales, scale);
        packed.set(JAVA_SHORT_UNALIGNED, ofScales + 4, offset);
        for (int i = 0; i < type.elements() / SCALED; i++) {
            long at = scales(n, k + (long) i * SCALED) + ofPair(n);
            packed.set(JAVA_BYTE, at, (byte) BlockType.scaleOf(b.data(), from, i));
            packed.set(JAVA_BYTE, at + 2, (byte) BlockType.offsetOf(b.data(), from, i));
        }
    }
}
