package dev.weft.cli.simulate;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.PlanWriter;
import dev.weft.sim.Prediction;

/**
 * One way to do a simulated problem.
 *
 * @param cut what {@code chunks} were made of
 * @param lanes communication workers of a rank, of which the algorithm may use fewer
 */
public record SimCandidate(PlanWriter algorithm, SimCut cut, Chunks chunks, int lanes) {

    /** A candidate and the predicted time of its whole call. */
    public record Priced(SimCandidate candidate, Prediction prediction) {

        public double ns() {
            return prediction.ns();
        }
    }

    /** Chunks of the largest shard. */
    public int chunksPerSource() {
        int most = 0;
        for (int source = 0; source < chunks.shards().ranks(); source++) {
            most = Math.max(most, chunks.count(source));
        }
        return most;
    }

    /** Rows of a chunk of the largest shard. */
    public long chunkRows() {
        long most = 0;
        for (int source = 0; source < chunks.shards().ranks(); source++) {
            most = Math.max(most, chunks.chunkRows(source));
        }
        return Math.min(most, Math.max(1, chunks.shards().maxRows()));
    }

    boolean overlaps() {
        return algorithm != Algorithm.SEQUENTIAL;
    }
}
