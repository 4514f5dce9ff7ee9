package dev.weft.op;

import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.plan.group.Experts;
import dev.weft.plan.group.RowGroups;
import dev.weft.tensor.Matrix;

/**
 * The second half of a layer of experts, on the CPU: each expert's rows are multiplied by its B,
 * and the products of a row are added, each times its weight. Every rank gets its own rows of the
 * sums. A rank's A has the rows of its experts, as {@link GroupedAllGatherMatmul} leaves them.
 *
 * <p>A product is summed over K from zero, in fp32. A row's sum starts from zero, and goes on with
 * the products of its experts in the order of their numbers: each time one fused multiply-add of
 * weight, product and sum. So it has the same bits whatever the number of ranks, the spread of
 * experts and the order of arrival (unless another {@link dev.weft.plan.Reduction.Order} is
 * chosen). It is rounded once, at the end.
 *
 * <p>Every rank makes the same calls, in the same order. One thread at a time uses it.
 */
public final class GroupedMatmulReduceScatter implements AutoCloseable {

    private final MatmulReduceScatter operator;
    private final Experts experts;
    private final RowGroups groups;

    private GroupedMatmulReduceScatter(
            MatmulReduceScatter operator, MatmulBuilder.OfExperts ofExperts) {
        this.operator = operator;
        this.experts = ofExperts.experts();
        this.groups = ofExperts.rows();
    }

    /**
     * Prepares what {@code builder} describes for experts. Its parts of K are {@link
     * Experts#ofRanks}, and its Bs are those of this rank's experts, in their order. Collective.
     */
    public static GroupedMatmulReduceScatter prepare(
            MatmulReduceBuilder<MatmulReduceScatter> builder, Experts experts) {
        MatmulReduceScatter operator = builder.prepareGrouped(experts);
        return new GroupedMatmulReduceScatter(operator, builder.ofExperts());
    }

    /**
     * Multiplies and sums. Collective. The result is valid until the next call.
     *
     * @param a [rows of this rank's experts, K]
     * @param rows which rows of the call they belong to, and with which weights; {@link
     *     RowGroups#shards} says how many rows of C each rank gets
     */
    public Result<Matrix> call(Matrix a, RowGroups rows) {
        groups.copyFrom(rows);
        return operator.call(a, groups.shards());
    }

    /** The most rows of each rank in a call. */
    public Shards mostRows() {
        return operator.mostRows();
    }

    /** Whether the bits of a row never depend on which rows are multiplied with it. */
    public boolean sameBitsForAnyRows() {
        return operator.sameBitsForAnyRows();
    }

    public Experts experts() {
        return experts;
    }

    /** This rank in its group. */
    public int rank() {
        return operator.rank();
    }

    /** What every call does on every rank: K counts experts. */
    public Plan plan() {
        return operator.plan();
    }

    /** The name of the engine that multiplies. */
    public String engine() {
        return operator.engine();
    }

    @Override
    public void close() {
        operator.close();
    }
}
