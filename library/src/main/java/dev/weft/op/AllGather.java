package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.Arrays;

/**
 * allgather(A) alone, prepared once and called many times: the same plans and the same executor as
 * {@link AllGatherMatmul}, without a product. Every rank ends with the same bytes. Collective, used
 * by one thread at a time.
 */
public final class AllGather implements AutoCloseable {

    private final AllGatherMatmul operator;

    private AllGather(AllGatherMatmul operator) {
        this.operator = operator;
    }

    /** Shard below shard: [rows of rank r, cols] on each rank become [all rows, cols]. */
    public static AllGather rows(
            Fabric fabric, Shards shards, long cols, DType dtype, PlanWriter algorithm) {
        return rows(fabric, shards, cols, dtype, algorithm, 0);
    }

    /** Shard below shard, in chunks of so many rows; 0 leaves the choice to Weft. */
    static AllGather rows(
            Fabric fabric,
            Shards shards,
            long cols,
            DType dtype,
            PlanWriter algorithm,
            long chunkRows) {
        return prepare(fabric, shards, cols, dtype, algorithm, chunkRows, false);
    }

    /**
     * Shard beside shard, along the last dimension: [rows, cols] on each rank become [rows, cols x
     * ranks], in rank order.
     *
     * @param chunkRows rows per chunk, or 0 for Weft's own choice
     */
    public static AllGather columns(
            Fabric fabric,
            long rows,
            long cols,
            DType dtype,
            PlanWriter algorithm,
            long chunkRows) {
        long[] equal = new long[fabric.size()];
        Arrays.fill(equal, rows);
        return prepare(fabric, Shards.of(equal), cols, dtype, algorithm, chunkRows, true);
    }

    private static AllGather prepare(
            Fabric fabric,
            Shards shards,
            long cols,
            DType dtype,
            PlanWriter algorithm,
            long chunkRows,
            boolean besideEachOther) {
        AllGatherMatmulBuilder builder =
                AllGatherMatmul.on(fabric)
                        .a(shards, dtype)
                        .algorithm(algorithm)
                        .computeWorkers(1)
                        .gatherOnly(cols, besideEachOther);
        if (chunkRows > 0) {
            builder.chunkRows(chunkRows);
        }
        return new AllGather(builder.prepare());
    }

    /** The place of the next call's shard, for producers that write it there themselves. */
    public Matrix nextShard() {
        return operator.nextShard();
    }

    /** Gathers. The result holds until the next call starts. */
    public Matrix call(Matrix shard) {
        return operator.call(shard).gathered().orElseThrow();
    }

    /** What the latest call did. */
    public Timeline timeline() {
        return operator.lastResult().timeline();
    }

    /** What every call does on this rank. */
    public RankPlan plan() {
        return operator.plan();
    }

    @Override
    public void close() {
        operator.close();
    }
}
