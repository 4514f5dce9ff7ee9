package dev.weft.compat;

import dev.weft.op.Operator;

/**
 * A ring through two buffers, prepared once and called many times.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
abstract class PreparedRing<M> implements AutoCloseable {

    final Operator<M> operator;

    PreparedRing(Operator<M> operator) {
        this.operator = operator;
    }

    /**
     * The operator that runs the calls: its plan has the permutes and the order of products, its
     * latest result has the timeline, and its views measure products and permutes separately.
     * Closing this closes it.
     */
    public final Operator<M> operator() {
        return operator;
    }

    @Override
    public void close() {
        operator.close();
    }
}
