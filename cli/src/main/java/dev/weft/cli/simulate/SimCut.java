package dev.weft.cli.simulate;

import dev.weft.cli.options.ExecutionSpec;
import dev.weft.compat.Ascend;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.sim.Engine;

/**
 * How a simulated rank's shard is cut: what was asked for, or as the machine would by itself. Zero
 * and null stand for what was not asked for.
 */
public record SimCut(
        long chunkRows, long chunkCols, int splitsPerRank, ExecutionSpec.AscendTiles ascendTiles) {

    /** 64 to 128 chunks of a shard where its rows allow it. */
    static final SimCut AUTOMATIC = new SimCut(0, 0, 0, null);

    /**
     * @param ascend whether tiles are meant for the Ascend example's rule without being told
     */
    public static SimCut of(ExecutionSpec execution, boolean ascend) {
        if (ascend && execution.chunkCols() > 0) {
            return new SimCut(
                    0,
                    0,
                    0,
                    new ExecutionSpec.AscendTiles(
                            execution.chunkRows(),
                            execution.chunkCols() / ExecutionSpec.TILES_PER_CHUNK));
        }
        return new SimCut(
                execution.chunkRows(),
                execution.chunkCols(),
                execution.splitsPerRank(),
                execution.ascendTiles());
    }

    static SimCut byRows(long chunkRows) {
        return new SimCut(chunkRows, 0, 0, null);
    }

    static SimCut bySplits(int splitsPerRank) {
        return new SimCut(0, 0, splitsPerRank, null);
    }

    public boolean isGiven() {
        return !equals(AUTOMATIC);
    }

    Chunks chunks(Shards shards, long k, Engine engine, long blockRows) {
        if (ascendTiles != null) {
            return Ascend.chunks(shards, k, ascendTiles.baseM(), ascendTiles.baseN(), blockRows);
        }
        return new Cut(chunkRows, splitsPerRank, chunkCols)
                .chunks(
                        shards,
                        k,
                        Math.toIntExact(engine.rowQuantum()),
                        blockRows,
                        Chunks.MIN_CHUNKS_PER_SOURCE);
    }
}
