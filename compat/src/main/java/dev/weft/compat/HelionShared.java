package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * A symmetric matrix: every rank of the group has one of the same shape, and every rank, or its
 * GPU, can read every other one's. Contiguous. Each rank writes its own, but not between the start
 * and the end of a gather. Any thread may read it.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
public abstract sealed class HelionShared<M> implements AutoCloseable
        permits HelionShared.OnHost, HelionDeviceShared {

    private final Fabric group;
    private final long rows;
    private final long cols;
    private final DType dtype;

    /** Collective; refuses shapes or types that differ between the ranks. */
    HelionShared(Fabric group, long rows, long cols, DType dtype) {
        HelionChecks.shard(rows, cols);
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

    /** Where its matrices lie. */
    abstract Place<M> place();

    /**
     * Refuses a gather that does not fit these shards.
     *
     * @param gathered receives it; null if the call takes memory of its own
     * @param words that the progress has
     */
    final void check(String name, M gathered, int words, int splits) {
        HelionChecks.splits(rows, cols, group.size(), splits);
        HelionChecks.longEnough(words, group.size(), splits);
        if (gathered != null) {
            Place.Size shard = place().size(local());
            HelionChecks.gathered(name, place().size(gathered), shard, group.size());
        }
    }

    /** Frees it. Collective on GPUs; no gather may be running. */
    @Override
    public abstract void close();

    /** A symmetric matrix in host memory. */
    static final class OnHost extends HelionShared<Matrix> {

        private final Region region;

        /** Collective. */
        OnHost(Fabric group, long rows, long cols, DType dtype) {
            super(group, rows, cols, dtype);
            region = Transport.of(group).allocate(Matrix.contiguousBytes(dtype, rows, cols));
        }

        @Override
        public Matrix of(int rank) {
            return Matrix.of(region.part(rank), dtype(), rows(), cols());
        }

        @Override
        Place<Matrix> place() {
            return Place.HOST;
        }

        @Override
        public void close() {
            region.close();
        }
    }
}
