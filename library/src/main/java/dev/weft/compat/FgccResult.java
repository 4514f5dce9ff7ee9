package dev.weft.compat;

import dev.weft.compat.Fgcc.Path;
import dev.weft.tensor.Matrix;
import java.util.Objects;

/**
 * What an FGCC call gave one rank. Both shapes flatten to [M, N] in natural row order, and that is
 * how the elements lie in {@link #product}.
 */
public final class FgccResult {

    private final FgccLayout layout;
    private final Matrix product;

    FgccResult(FgccLayout layout, Matrix product) {
        this.layout = layout;
        this.product = product;
    }

    FgccLayout layout() {
        return layout;
    }

    /** [M, N]. */
    public Matrix product() {
        return product;
    }

    /** Where the fragments were kept. */
    public Path path() {
        return layout.path();
    }

    /** C, the channels of the permute. */
    public int channels() {
        return layout.channels();
    }

    /** (R, L, C, loc, N) on the SBUF path, (R, C, L, loc, N) on the HBM path. */
    public long[] shape() {
        return layout.shape();
    }

    /** The rows that program and channel computed of {@code rank}'s, [loc, N]. */
    public Matrix slice(int rank, int program, int channel) {
        return product.rows(layout.firstRow(rank, program, channel), layout.loc());
    }

    /** The element at five indices, in the order of {@link #shape()}. */
    public float get(long rank, long second, long third, long row, long col) {
        long[] shape = shape();
        Objects.checkIndex(rank, shape[0]);
        Objects.checkIndex(second, shape[1]);
        Objects.checkIndex(third, shape[2]);
        Objects.checkIndex(row, shape[3]);
        Objects.checkIndex(col, shape[4]);
        return product.get(((rank * shape[1] + second) * shape[2] + third) * shape[3] + row, col);
    }
}
