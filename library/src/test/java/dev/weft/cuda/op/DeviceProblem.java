package dev.weft.cuda.op;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;

/** Random inputs of one problem in host memory, and what judges its results. */
record DeviceProblem(Shards shards, Matrix a, Matrix b, boolean transposed, DType out) {

    /** All of one type. */
    static DeviceProblem random(Arena arena, Shards shards, long k, long n, DType type) {
        return random(arena, shards, k, n, type, type, false);
    }

    static DeviceProblem random(
            Arena arena, Shards shards, long k, long n, DType in, DType out, boolean transposed) {
        Random random = new Random(shards.totalRows() * 31 + k * 7 + n);
        Matrix a = Matrix.allocate(arena, in, shards.totalRows(), k);
        Matrix b = Matrix.allocate(arena, in, transposed ? n : k, transposed ? k : n);
        fill(a, random);
        fill(b, random);
        return new DeviceProblem(shards, a, b, transposed, out);
    }

    /** Of two ranks, of four with unlike shards, and of {@code most} ranks. */
    static List<DeviceProblem> ofSeveralShards(Arena arena, int most) {
        return Stream.of(Shards.even(512, 2), Shards.of(400, 0, 599, 1), Shards.even(1024, most))
                .map(shards -> random(arena, shards, 264, 392, DType.BF16, DType.FP32, false))
                .toList();
    }

    static void fill(Matrix matrix, Random random) {
        for (long r = 0; r < matrix.rows(); r++) {
            for (long c = 0; c < matrix.cols(); c++) {
                matrix.set(r, c, (float) random.nextGaussian());
            }
        }
    }

    Matrix shard(int rank) {
        return a.rows(shards.firstRow(rank), shards.rows(rank));
    }

    CudaAllGatherMatmulBuilder describe(CudaAllGatherMatmulBuilder builder) {
        return builder.a(shards, a.dtype()).b(b, transposed).output(out);
    }

    /** Fresh memory for a matrix of the same shape. */
    static DeviceMatrix like(DeviceMatrix matrix) {
        long bytes = DeviceMatrix.alignedBytes(matrix.dtype(), matrix.rows(), matrix.cols());
        return DeviceMatrix.in(
                DeviceBuffer.allocate(bytes), matrix.dtype(), matrix.rows(), matrix.cols());
    }

    /** Host matrices on the device, for the judges. */
    static DeviceMatrix upload(Matrix matrix, GpuStream stream) {
        DeviceBuffer buffer =
                DeviceBuffer.allocate(
                        DeviceMatrix.alignedBytes(matrix.dtype(), matrix.rows(), matrix.cols()));
        DeviceMatrix device = DeviceMatrix.in(buffer, matrix.dtype(), matrix.rows(), matrix.cols());
        device.upload(matrix, stream);
        return device;
    }
}
