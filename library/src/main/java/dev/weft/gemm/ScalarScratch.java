package dev.weft.gemm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Some whole rows of A as fp32, and the sums of one tile. Lives as long as its arena. */
final class ScalarScratch implements Scratch {

    private static final long ALIGNMENT_BYTES = 64;

    private final long maxK;
    private final MemorySegment rows;
    private final MemorySegment sums;

    ScalarScratch(long maxK, int tileRows, int tileCols, Arena arena) {
        this.maxK = maxK;
        this.rows = arena.allocate(maxK * tileRows * Float.BYTES, ALIGNMENT_BYTES);
        this.sums = arena.allocate((long) tileRows * tileCols * Float.BYTES, ALIGNMENT_BYTES);
    }

    /** The scratch behind {@code scratch}; refuses another engine's, or one for fewer columns. */
    static ScalarScratch of(Scratch scratch, long k) {
        if (!(scratch instanceof ScalarScratch own)) {
            throw new IllegalArgumentException(
                    "scratch of another engine: ask engine scalar for scratch");
        }
        if (own.maxK < k) {
            throw new IllegalArgumentException(
                    "scratch for " + own.maxK + " columns of A, the product has " + k);
        }
        return own;
    }

    MemorySegment rows() {
        return rows;
    }

    MemorySegment sums() {
        return sums;
    }
}
