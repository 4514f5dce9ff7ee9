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
 * an {@link Operator}'s, without a product. Every rank ends with the same bytes. Collective, used
 * by one thread at a time.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
public final class AllGather<M> implements AutoCloseable {

    private final Operator<M> operator;

    private AllGather(Operator<M> operator) {
        this.operator = operator;
    }

    /** Shard below shard: [rows of rank r, cols] on each rank become [all rows, cols]. */
    public static AllGather<Matrix> rows(
            Fabric fabric, Shards shards, long cols, DType dtype, PlanWriter algorithm) {
        return rows(fabric, shards, cols, dtype, algorithm, 0);
    }

    /** Shard below shard, in chunks of so many rows; 0 leaves the choice to Weft. */
    static AllGather<Matrix> rows(
            Fabric fabric,
            Shards shards,
            long cols,
            DType dtype,
            PlanWriter algorithm,
            long chunkRows) {
        AllGatherMatmulBuilder builder = AllGatherMatmul.on(fabric);
        return prepare(builder, shards, cols, dtype, algorithm, chunkRows, false);
    }

    /**
     * Shard below shard, where the operators of {@code builder} run, such as on a GPU. The builder
     * has been told nothing of A and has no B.
     */
    public static <M, B extends OperatorBuilder<M, B>> AllGather<M> rows(
            B builder, Shards shards, long cols, DType dtype, PlanWriter algorithm) {
        return prepare(builder, shards, cols, dtype, algorithm, 0, false);
    }

    /**
     * Shard beside shard, along the last dimension: [rows, cols] on each rank become [rows, cols x
     * ranks], in rank order.
     *
     * @param chunkRows rows per chunk, or 0 for Weft's own choice
     */
    public static AllGather<Matrix> columns(
            Fabric fabric,
            long rows,
            long cols,
            DType dtype,
            PlanWriter algorithm,
            long chunkRows) {
        return columns(AllGatherMatmul.on(fabric), rows, cols, dtype, algorithm, chunkRows);
    }

    /** Shard beside shard, where the operators of {@code builder} run, such as on a GPU. */
    public static <M, B extends OperatorBuilder<M, B>> AllGather<M> columns(
            B builder, long rows, long cols, DType dtype, PlanWriter algorithm, long chunkRows) {
        if (builder.ranks() == 0) {
            throw new IllegalArgumentException(
                    "shards side by side of peers in host memory: expected ranks of a fabric");
        }
        long[] equal = new long[builder.ranks()];
        Arrays.fill(equal, rows);
        return prepare(builder, Shards.of(equal), cols, dtype, algorithm, chunkRows, true);
    }

    private static <M, B extends OperatorBuilder<M, B>> AllGather<M> prepare(
            B builder,
            Shards shards,
            long cols,
            DType dtype,
            PlanWriter algorithm,
            long chunkRows,
            boolean besideEachOther) {
        builder.a(shards, dtype)
                .algorithm(algorithm)
                .computeWorkers(1)
                .gatherOnly(cols, besideEachOther);
        if (chunkRows > 0) {
            builder.chunkRows(chunkRows);
        }
        return new AllGather<>(builder.prepare());
    }

    /** The place of the next call's shard, for producers that write it there themselves. */
    public M nextShard() {
        return operator.nextShard();
    }

    /** Gathers. The result holds until the next call starts. */
    public M call(M shard) {
        return operator.call(shard).gathered().orElseThrow();
    }

    /** What the latest call gave this rank. */
    public M result() {
        return operator.lastResult().gathered().orElseThrow();
    }

    /**
     * What the latest call gave another rank of this one's host, where the builder was asked for
     * {@link OperatorBuilder#sharedResults}: see {@link Operator#peerGathered}.
     */
    public M peer(int rank) {
        return operator.peerGathered(rank);
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
