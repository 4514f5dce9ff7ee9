package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import java.util.Arrays;

/**
 * allgather(A) without a product, prepared once and called many times. It uses the same plans and
 * the same executor as an {@link Operator}. Every rank ends with the same bytes. Collective, used
 * by one thread at a time.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
public final class AllGather<M> implements AutoCloseable {

    private final Operator<M> operator;

    private AllGather(Operator<M> operator) {
        this.operator = operator;
    }

    /** Gathers shard below shard: [rows of rank r, cols] on each rank become [all rows, cols]. */
    public static AllGather<Matrix> rows(
            Fabric fabric, Shards shards, long cols, DType dtype, GatherWriter algorithm) {
        return rows(fabric, shards, cols, dtype, algorithm, 0);
    }

    /**
     * Gathers shard below shard in chunks of {@code chunkRows} rows; 0 leaves the choice to Weft.
     */
    static AllGather<Matrix> rows(
            Fabric fabric,
            Shards shards,
            long cols,
            DType dtype,
            GatherWriter algorithm,
            long chunkRows) {
        AllGatherMatmulBuilder builder = AllGatherMatmul.on(fabric);
        return prepare(builder, shards, cols, dtype, algorithm, chunkRows, false);
    }

    /**
     * Gathers shard below shard on the device that {@code builder} is for, such as a GPU. Nothing
     * has been set on the builder: neither A nor B.
     */
    public static <M> AllGather<M> rows(
            OperatorBuilder<M, ?> builder,
            Shards shards,
            long cols,
            DType dtype,
            GatherWriter algorithm) {
        return prepare(builder, shards, cols, dtype, algorithm, 0, false);
    }

    /**
     * Gathers shards side by side, along the last dimension: [rows, cols] on each rank become
     * [rows, cols x ranks], in rank order.
     *
     * @param chunkRows rows per chunk; 0 leaves the choice to Weft
     */
    public static AllGather<Matrix> columns(
            Fabric fabric,
            long rows,
            long cols,
            DType dtype,
            GatherWriter algorithm,
            long chunkRows) {
        return columns(AllGatherMatmul.on(fabric), rows, cols, dtype, algorithm, chunkRows);
    }

    /** Gathers shards side by side on the device that {@code builder} is for, such as a GPU. */
    public static <M> AllGather<M> columns(
            OperatorBuilder<M, ?> builder,
            long rows,
            long cols,
            DType dtype,
            GatherWriter algorithm,
            long chunkRows) {
        if (builder.ranks() == 0) {
            throw new IllegalArgumentException(
                    "shards side by side of peers in host memory: expected ranks of a fabric");
        }
        long[] equal = new long[builder.ranks()];
        Arrays.fill(equal, rows);
        return prepare(builder, Shards.of(equal), cols, dtype, algorithm, chunkRows, true);
    }

    private static <M> AllGather<M> prepare(
            OperatorBuilder<M, ?> builder,
            Shards shards,
            long cols,
            DType dtype,
            GatherWriter algorithm,
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

    /** The next call's shard, for producers that write it in place. */
    public M nextShard() {
        return operator.nextShard();
    }

    /** Likewise for a call of fewer rows. */
    public M nextShard(Shards shards) {
        return operator.nextShard(shards);
    }

    /** Gathers. The result is valid until the next call starts. */
    public M call(M shard) {
        return operator.call(shard).gathered().orElseThrow();
    }

    /** A call of fewer rows: see {@link Operator#call(Object, Shards)}. */
    public M call(M shard, Shards shards) {
        return operator.call(shard, shards).gathered().orElseThrow();
    }

    /** The latest call's result on this rank. */
    public M result() {
        return operator.lastResult().gathered().orElseThrow();
    }

    /**
     * The latest call's result on another rank of the same host, if the builder was given {@link
     * OperatorBuilder#sharedResults}: see {@link Operator#peerGathered}.
     */
    public M peer(int rank) {
        return operator.peerGathered(rank);
    }

    /** What the latest call did. */
    public Timeline timeline() {
        return operator.lastResult().timeline();
    }

    /** This rank in its group. */
    public int rank() {
        return operator.rank();
    }

    /** What every call does on every rank. */
    public Plan plan() {
        return operator.plan();
    }

    @Override
    public void close() {
        operator.close();
    }
}
