package dev.weft.compat;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.fabric.Fabric;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.OperatorBuilder;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * Where a rank's matrices lie, in host memory or on a GPU: all that the two forms of a call differ
 * in. Immutable.
 *
 * @param <M> the type of matrix: {@link Matrix} in host memory, or {@link DeviceMatrix} on a GPU
 */
public abstract sealed class Place<M> {

    /** Host memory. */
    public static final Place<Matrix> HOST = new Host();

    private Place() {}

    /** This rank's GPU. */
    public static Place<DeviceMatrix> on(Gpu gpu) {
        return new OnGpu(gpu);
    }

    /** What rules ask about a matrix. */
    record Size(long rows, long cols, DType dtype, long rowPitch, String text) {

        boolean is(long rows, long cols, DType dtype) {
            return this.rows == rows && this.cols == cols && this.dtype == dtype;
        }
    }

    /** A new builder of operators whose matrices lie here. */
    abstract OperatorBuilder<M, ?> operator(Fabric group);

    /** Like the other, where {@code ranks} ranks share the cores, not only the group's. */
    OperatorBuilder<M, ?> operator(Fabric group, int ranks) {
        return operator(group);
    }

    abstract Size size(M matrix);

    /** A view of some rows. */
    abstract M rows(M matrix, long first, long count);

    /** Collective: the GPUs of all ranks; empty in host memory. */
    abstract long[] gpus(Fabric group);

    private static final class Host extends Place<Matrix> {

        @Override
        OperatorBuilder<Matrix, ?> operator(Fabric group) {
            return AllGatherMatmul.on(group);
        }

        @Override
        OperatorBuilder<Matrix, ?> operator(Fabric group, int ranks) {
            int workers = Math.max(1, Runtime.getRuntime().availableProcessors() / ranks);
            return operator(group).computeWorkers(workers);
        }

        @Override
        Size size(Matrix matrix) {
            long pitch = matrix.rowPitch();
            return new Size(matrix.rows(), matrix.cols(), matrix.dtype(), pitch, matrix.describe());
        }

        @Override
        Matrix rows(Matrix matrix, long first, long count) {
            return matrix.rows(first, count);
        }

        @Override
        long[] gpus(Fabric group) {
            return new long[0];
        }
    }

    private static final class OnGpu extends Place<DeviceMatrix> {

        private final Gpu gpu;

        OnGpu(Gpu gpu) {
            this.gpu = gpu;
        }

        @Override
        OperatorBuilder<DeviceMatrix, ?> operator(Fabric group) {
            return CudaAllGatherMatmul.on(group, gpu);
        }

        @Override
        Size size(DeviceMatrix matrix) {
            long pitch = matrix.rowPitch();
            return new Size(matrix.rows(), matrix.cols(), matrix.dtype(), pitch, matrix.describe());
        }

        @Override
        DeviceMatrix rows(DeviceMatrix matrix, long first, long count) {
            return matrix.rows(first, count);
        }

        @Override
        long[] gpus(Fabric group) {
            return group.exchange(gpu.identity());
        }
    }
}
