package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * The sum of what the ranks pass, without a product, of which every rank gets its own rows.
 * Prepared once and called many times, on the CPU. Elements are added in fp32, in rank order, and
 * rounded once, so a row has the same bits whichever rank gets it. Collective, used by one thread
 * at a time.
 */
public final class ReduceScatter implements AutoCloseable {

    private final MatmulReduceScatter operator;

    private ReduceScatter(MatmulReduceScatter operator) {
        this.operator = operator;
    }

    /**
     * Sums matrices of {@code cols} columns and all rows.
     *
     * @param shards which rank gets which rows of the sum
     */
    public static ReduceScatter rows(Fabric fabric, Shards shards, long cols, DType dtype) {
        return new ReduceScatter(
                MatmulReduceScatter.on(fabric)
                        .sumsOnly(shards, cols, dtype)
                        .output(dtype)
                        .prepare());
    }

    /** The next call's matrix, for producers that write it in place. */
    public Matrix nextShard() {
        return operator.nextShard();
    }

    /** Sums. The result is valid until the next call starts. */
    public Matrix call(Matrix own) {
        return operator.call(own).product();
    }

    /** A call of fewer rows: see {@link Operator#call(Object, Shards)}. */
    public Matrix call(Matrix own, Shards shards) {
        return operator.call(own, shards).product();
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
