package dev.weft.gemm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A block of rows of A and one of C as fp32 without gaps, for operands that native code cannot read
 * or write in place. Lives as long as its arena.
 */
final class OpenBlasScratch implements Scratch {

    private static final long ALIGNMENT_BYTES = 64;

    /** Few enough rows that very long ones stay below 256 MiB. */
    private static final long MAX_FLOATS = 1L << 26;

    private final long maxK;
    private final long maxN;
    private final int blockRows;
    private final MemorySegment rows;
    private final MemorySegment sums;
    private final RowConverter converter = new RowConverter();

    OpenBlasScratch(long maxK, long maxN, int wantedRows, Arena arena) {
        this.maxK = maxK;
        this.maxN = maxN;
        this.blockRows = Math.clamp(MAX_FLOATS / Math.max(1, maxK + maxN), 1, wantedRows);
        this.rows = arena.allocate(blockRows * maxK * Float.BYTES, ALIGNMENT_BYTES);
        this.sums = arena.allocate(blockRows * maxN * Float.BYTES, ALIGNMENT_BYTES);
    }

    /** The scratch behind {@code scratch}; refuses another engine's, or one for fewer columns. */
    static OpenBlasScratch of(Scratch scratch, long k, long n) {
        if (!(scratch instanceof OpenBlasScratch own)) {
            throw new IllegalArgumentException(
                    "scratch of another engine: ask engine openblas for scratch");
        }
        if (own.maxK < k || own.maxN < n) {
            throw new IllegalArgumentException(
                    "scratch for %s columns of A and %s of B, the product has %s and %s"
                            .formatted(own.maxK, own.maxN, k, n));
        }
        return own;
    }

    /** Rows that fit at a time. */
    int blockRows() {
        return blockRows;
    }

    /** Rows of A. */
    MemorySegment rows() {
        return rows;
    }

    /** Rows of C. */
    MemorySegment sums() {
        return sums;
    }

    RowConverter converter() {
        return converter;
    }
}
