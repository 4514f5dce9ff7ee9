package dev.weft.op;

import dev.weft.op.exec.Dispatch;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.plan.group.Experts;
import dev.weft.plan.group.RowGroups;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.Routes;
import java.util.BitSet;

/**
 * The first half of a layer of experts, on the CPU: rows of A go to the ranks whose experts they
 * name, and each expert's rows are multiplied by its B as they arrive. A rank's result has the rows
 * of its experts, one expert's below the other's; {@link #groups} says which rows of A these are.
 *
 * <p>A row's product has the same bits whatever the number of ranks, the spread of experts, the
 * other rows and the order of arrival, as far as {@link Operator#sameBitsForAnyRows}. Experts may
 * have any number of rows, or none; nothing is padded.
 *
 * <p>Every rank makes the same calls, in the same order. One thread at a time uses it.
 */
public final class GroupedAllGatherMatmul implements AutoCloseable {

    /** An expert's number and a weight, as fp32 that is only copied. */
    static final long COLS_OF_ROUTE = 2;

    private final AllGatherMatmul operator;
    private final AllGather<Matrix> routes;
    private final Experts experts;
    private final Dispatch dispatch;
    private final RowGroups groups;
    private final BitSet[] wanted;

    /** Otherwise rows are read where they are, and nobody asks which are wanted. */
    private final boolean copies;

    /** Takes ownership of both operators. */
    GroupedAllGatherMatmul(
            AllGatherMatmul operator, AllGather<Matrix> routes, MatmulBuilder.OfExperts ofExperts) {
        this.operator = operator;
        this.routes = routes;
        this.experts = ofExperts.experts();
        this.groups = ofExperts.rows();
        this.wanted = ofExperts.wanted();
        this.copies = operator.plan().steps().get(operator.rank()).lanes() > 0;
        this.dispatch = new Dispatch(experts, operator.mostRows().totalRows());
        groups.begin(operator.mostRows(), new int[groups.groups()], 0);
    }

    /**
     * Prepares what {@code builder} describes for experts. Its Bs are those of this rank's experts,
     * in their order; if its epilogue joins two products, two for each expert. All have one shape.
     * A bias is that of all experts. Collective.
     */
    public static GroupedAllGatherMatmul prepare(AllGatherMatmulBuilder builder, Experts experts) {
        return builder.prepareGrouped(experts);
    }

    /** A call of as many rows as the operator was prepared for. */
    public Result<Matrix> call(Matrix shard, Routes own) {
        return call(shard, own, operator.mostRows());
    }

    /**
     * Sends rows to the experts that they name, and multiplies. Collective. The result is valid
     * until the next call.
     *
     * @param shard this rank's rows of A
     * @param own their routes
     * @param shards how many rows each rank has in this call, at most {@link #mostRows}; the same
     *     on all ranks
     * @throws IllegalArgumentException on all ranks, if a row names an expert that does not exist
     *     or an expert or rank would get more rows than it takes; no row has been sent. On this
     *     rank alone, if the shard or the routes have the wrong size: the others wait for another
     *     call
     */
    public Result<Matrix> call(Matrix shard, Routes own, Shards shards) {
        // Before anything is told to other ranks: a call that only this rank refuses can be
        // repeated.
        operator.check(shard, shards);
        dispatch(own, shards);
        return operator.call(shard, shards);
    }

    private void dispatch(Routes own, Shards shards) {
        long rows = shards.rows(rank());
        if (rows > 0 && (own.perRow() != experts.perRow() || own.rows() < rows)) {
            throw new IllegalArgumentException(
                    "routes of %d rows with %d experts each: expected %d rows with %d"
                            .formatted(own.rows(), own.perRow(), rows, experts.perRow()));
        }
        long cols = COLS_OF_ROUTE * experts.perRow();
        Matrix all = routes.call(Matrix.of(own.data(), DType.FP32, rows, cols), shards);
        dispatch.read(Routes.of(all.data(), shards.totalRows(), experts.perRow()), shards);
        dispatch.fill(groups, rank());
        if (copies) {
            dispatch.fill(wanted);
        }
    }

    /** Which rows of A the latest result has, a group for each of this rank's experts. */
    public RowGroups groups() {
        return groups;
    }

    /** How many rows any expert took in the latest call. */
    public int rowsOf(int expert) {
        return dispatch.count(expert);
    }

    /** How many rows experts have left out in the latest call: see {@link Experts.Overflow}. */
    public long dropped() {
        return dispatch.dropped();
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

    /** What every call does on every rank: that of a product of all rows. */
    public Plan plan() {
        return operator.plan();
    }

    /** The name of the engine that multiplies. */
    public String engine() {
        return operator.engine();
    }

    @Override
    public void close() {
        try (routes) {
            operator.close();
        }
    }
}
