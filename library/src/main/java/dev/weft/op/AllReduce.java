package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * The sum of what the ranks pass, without a product, of which every rank gets all rows. Prepared
 * once and called many times, on the CPU. Elements are added in fp32, in rank order, and rounded
 * once, so every rank has the same bits in every call. Collective, used by one thread at a time.
 */
public final class AllReduce implements AutoCloseable {

    private final MatmulAllReduce operator;

    private AllReduce(MatmulAllReduce operator) {
        this.operator = operator;
    }

    /** Sums matrices of [{@code rows}, {@code cols}]. */
    public static AllReduce rows(Fabric fabric, long rows, long cols, DType dtype) {
        Shards shards = Shards.even(rows, fabric.size());
        return new AllReduce(
                MatmulAllReduce.on(fabric).sumsOnly(shards, cols, dtype).output(dtype).prepare());
    }

    /** The next call's matrix, for producers that write it in place. */
    public Matrix nextShard() {
        return operator.nextShard();
    }

    /** Sums. The result is valid until the next call starts. */
    public Matrix call(Matrix own) {
        return operator.call(own).product();
    }

    /** A call of fewer rows. */
    public Matrix call(Matrix own, long rows) {
        return operator.call(own, rows).product();
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
