package dev.weft.gemm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Some whole rows of A as fp32, and the sums of one tile. Valid as long as its arena. */
record ScalarScratch(long maxK, MemorySegment rows, MemorySegment sums) implements Scratch {

    static ScalarScratch allocate(long maxK, int tileRows, int tileCols, Arena arena) {
        return new ScalarScratch(
                maxK,
                arena.allocate(maxK * tileRows * Float.BYTES, PackedB.ALIGNMENT_BYTES),
                arena.allocate((long) tileRows * tileCols * Float.BYTES, PackedB.ALIGNMENT_BYTES));
    }

    /** The scratch behind {@code scratch}; refuses another engine's, or one for fewer columns. */
    static ScalarScratch of(Scratch scratch, long k) {
        ScalarScratch own = Scratch.of(ScalarScratch.class, scratch, "scalar");
        if (own.maxK < k) {
            throw new IllegalArgumentException(
                    "scratch for " + own.maxK + " columns of A, the product has " + k);
        }
        return own;
    }
}
