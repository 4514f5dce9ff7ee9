package dev.weft.gemm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A block of rows of A and one of C as fp32 without gaps, for operands that native code cannot read
 * or write in place. Lives as long as its arena.
 *
 * @param blockRows the rows that fit at a time
 */
record OpenBlasScratch(
        long maxK,
        long maxN,
        int blockRows,
        MemorySegment rows,
        MemorySegment sums,
        RowConverter converter)
        implements Scratch {

    /** Few enough rows that very long ones stay below 256 MiB. */
    private static final long MAX_FLOATS = 1L << 26;

    static OpenBlasScratch allocate(long maxK, long maxN, int wantedRows, Arena arena) {
        int blockRows = Math.clamp(MAX_FLOATS / Math.max(1, maxK + maxN), 1, wantedRows);
        return new OpenBlasScratch(
                maxK,
                maxN,
                blockRows,
                arena.allocate(blockRows * maxK * Float.BYTES, PackedB.ALIGNMENT_BYTES),
                arena.allocate(blockRows * maxN * Float.BYTES, PackedB.ALIGNMENT_BYTES),
                new RowConverter());
    }

    /** The scratch behind {@code scratch}; refuses another engine's, or one for fewer columns. */
    static OpenBlasScratch of(Scratch scratch, long k, long n) {
        OpenBlasScratch own = Scratch.of(OpenBlasScratch.class, scratch, "openblas");
        if (own.maxK < k || own.maxN < n) {
            throw new IllegalArgumentException(
                    "scratch for %s columns of A and %s of B, the product has %s and %s"
                            .formatted(own.maxK, own.maxN, k, n));
        }
        return own;
    }
}
