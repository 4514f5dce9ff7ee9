package dev.weft.cli;

import dev.weft.plan.Algorithm;
import java.time.Duration;

/**
 * How a problem is run, checked and complete. Zero stands for Weft's own choice.
 *
 * @param processes whether ranks are processes rather than threads
 * @param ascendTiles where the Ascend example's chunk rule is wanted, otherwise null
 * @param engine of the product: auto, scalar, vector or openblas
 */
record ExecutionSpec(
        Algorithm algorithm,
        boolean processes,
        String engine,
        int computeWorkers,
        int commWorkers,
        long chunkRows,
        long chunkCols,
        int splitsPerRank,
        AscendTiles ascendTiles,
        int warmup,
        int iterations,
        boolean keepGathered,
        Duration deadline) {

    /** Tile sizes of the Ascend example's chunk rule. */
    record AscendTiles(long baseM, long baseN) {}

    String launcher() {
        return processes ? "processes" : "threads";
    }
}
