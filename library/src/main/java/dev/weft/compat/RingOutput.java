package dev.weft.compat;

import dev.weft.tensor.Matrix;
import java.util.Objects;

/**
 * A rank's output of the ring, [R, m, N_local]. A view: it holds as long as the product does.
 *
 * @param ranks R
 * @param product the same elements as [R * m, N_local], in natural row order
 */
public record RingOutput(int ranks, Matrix product) {

    /** {@code {R, m, N_local}}. */
    public long[] shape() {
        return new long[] {ranks, product.rows() / ranks, product.cols()};
    }

    /** The rows of rank {@code source} times this rank's columns, [m, N_local]. */
    public Matrix slot(int source) {
        Objects.checkIndex(source, ranks);
        long m = product.rows() / ranks;
        return product.rows(source * m, m);
    }
}
