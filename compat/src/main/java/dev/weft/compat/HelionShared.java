package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.tensor.DType;

/**
 * A symmetric matrix: every rank of the group has one of the same shape, and every rank, or its
 * GPU, can read every other one's. Contiguous. Each rank writes its own, but not between the start
 * and the end of a gather. Any thread may read it.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
public abstract sealed class HelionShared<M> implements AutoCloseable
        permits HelionHostShared, HelionDeviceShared {

    private final Fabric group;
    private final long rows;
    private final long cols;
    private final DType dtype;

    /** Collective; refuses shapes or types that differ between the ranks. */
    HelionShared(Fabric group, long rows, long cols, DType dtype) {
        HelionChecks.agreed(group, "rows", rows);
        HelionChecks.agreed(group, "columns", cols);
        HelionChecks.agreed(group, "dtype (0 fp32, 1 fp16, 2 bf16)", dtype.ordinal());
        this.group = group;
        this.rows = rows;
        this.cols = cols;
        this.dtype = dtype;
    }

    /** The ranks that share it. */
    public final Fabric group() {
        return group;
    }

    /** This rank's matrix, initially zero. */
    public final M local() {
        return of(group.rank());
    }

    /** The matrix of the group's rank {@code rank}, read in place. */
    public abstract M of(int rank);

    /** Rows on each rank. */
    public final long rows() {
        return rows;
    }

    public final long cols() {
        return cols;
    }

    public final DType dtype() {
        return dtype;
    }

    /** Frees it. Collective on GPUs; no gather may be running. */
    @Override
    public abstract void close();
}
