package dev.weft.compat;

import dev.weft.compat.Fgcc.Path;
import dev.weft.op.Operator;
import java.util.Objects;

/**
 * The result of an FGCC call on one rank. Both shapes flatten to [M, N] in natural row order, the
 * order of the elements in {@link #product}.
 *
 * <p>The result of a single call is valid until it is closed. That of a prepared call is valid
 * until the next call, and closing it does nothing.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
public final class FgccResult<M> implements AutoCloseable {

    private final FgccLayout layout;
    private final M product;
    private final Place<M> place;
    private final Operator<M> operator;
    private final Runnable release;

    FgccResult(
            FgccLayout layout, M product, Place<M> place, Operator<M> operator, Runnable release) {
        this.layout = layout;
        this.product = product;
        this.place = place;
        this.operator = operator;
        this.release = release;
    }

    /** A copy that closes what computed it. */
    FgccResult<M> closing(Fgcc<M> prepared) {
        return new FgccResult<>(layout, product, place, operator, prepared::close);
    }

    /** [M, N]. */
    public M product() {
        return product;
    }

    /**
     * The product of the group's rank {@code rank}, with its columns: of a single call, or of one
     * that was prepared with {@link FgccConfig#withSharedResult}. For ranks of one host, or on GPUs
     * that reach each other. Waits until it is complete: see {@link Operator#peerProduct}. Valid
     * until that rank closes it.
     */
    public M peer(int rank) {
        return operator.peerProduct(rank, 0);
    }

    /** Where the fragments were kept. */
    public Path path() {
        return layout.path();
    }

    /** (R, L, C, loc, N) on the SBUF path, (R, C, L, loc, N) on the HBM path. */
    public long[] shape() {
        return layout.shape();
    }

    /** The rows of {@code rank} that a program and channel computed, [loc, N]. */
    public M slice(int rank, int program, int channel) {
        return place.rows(product, layout.firstRow(rank, program, channel), layout.loc());
    }

    /** The row at four indices, in the order of {@link #shape()}, [1, N]. */
    public M row(long rank, long second, long third, long row) {
        long[] shape = shape();
        Objects.checkIndex(rank, shape[0]);
        Objects.checkIndex(second, shape[1]);
        Objects.checkIndex(third, shape[2]);
        Objects.checkIndex(row, shape[3]);
        long slice = (rank * shape[1] + second) * shape[2] + third;
        return place.rows(product, slice * shape[3] + row, 1);
    }

    @Override
    public void close() {
        release.run();
    }
}
