package dev.weft.bench;

/** What the GPU has to reach, by size. Pure. */
final class GpuRules {

    /** Ranks that share a GPU: so many times the products' own time at most. */
    static final double SHARED_NEEDED = 1.2;

    private static final long LARGE_ROWS = 4096;

    private GpuRules() {}

    /** The gated kernel's speed over cuBLAS's, at least. */
    static double gatedNeeded(long m) {
        return m >= LARGE_ROWS ? 0.97 : 0.93;
    }

    /** The part of the limit that a pipelined call reaches at least: short calls pay for starts. */
    static double pipelinedNeeded(double limitUs) {
        if (limitUs > 900) {
            return 0.97;
        }
        if (limitUs > 500) {
            return 0.95;
        }
        return limitUs > 200 ? 0.90 : 0.75;
    }
}
