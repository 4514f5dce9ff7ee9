package dev.weft.compat.command;

import dev.weft.cli.run.CudaSite;
import dev.weft.compat.Helion;
import dev.weft.compat.Place;
import dev.weft.compat.command.ProductRun.At;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.OperatorBuilder;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * The place of a rank's matrices in a source's call. Used by the rank's thread.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 */
interface SourceSite<M> extends AutoCloseable {

    /** {@code cpu}, or {@code cuda:} and the GPU's name. */
    String device();

    /** Copies the matrix here; valid until the close. */
    M put(Matrix matrix);

    void copy(Matrix from, M to);

    /** A copy of the matrix in host memory. */
    Matrix get(M matrix, Arena arena);

    /** Fills it so that every element must be written again. */
    void poison(M matrix);

    /** Copies {@code bytes} bytes from one place here to another, and waits for it. */
    Runnable plainCopy(long bytes, Arena arena);

    /** The same place, as the sources' calls know it. */
    Place<M> place();

    /** A builder of operators that run here. */
    OperatorBuilder<M, ?> operators(Fabric group);

    /** Helion's calls with memory here; {@code config} may be null. */
    HelionCall.Calls<M> helion(At<M> at, int splits, Helion.Config config);

    @Override
    void close();

    static SourceSite<?> of(Transport world, boolean cuda) {
        return cuda ? new Device(world) : new Host(world);
    }

    /** A site in host memory. */
    record Host(Transport world) implements SourceSite<Matrix> {

        @Override
        public String device() {
            return "cpu";
        }

        @Override
        public Matrix put(Matrix matrix) {
            return matrix;
        }

        @Override
        public void copy(Matrix from, Matrix to) {
            to.copyFrom(from);
        }

        @Override
        public Matrix get(Matrix matrix, Arena arena) {
            Matrix copy = Matrix.allocate(arena, matrix.dtype(), matrix.rows(), matrix.cols());
            copy.copyFrom(matrix);
            return copy;
        }

        @Override
        public void poison(Matrix matrix) {
            matrix.data().fill((byte) 0xFF);
        }

        @Override
        public Runnable plainCopy(long bytes, Arena arena) {
            MemorySegment from = arena.allocate(bytes).fill((byte) 1);
            MemorySegment to = arena.allocate(bytes);
            return () -> MemorySegment.copy(from, 0, to, 0, bytes);
        }

        @Override
        public Place<Matrix> place() {
            return Place.HOST;
        }

        @Override
        public HelionCall.Calls<Matrix> helion(At<Matrix> at, int splits, Helion.Config config) {
            return HelionCall.onHost(at, splits, config);
        }

        /** All groups of the world share the cores. */
        @Override
        public OperatorBuilder<Matrix, ?> operators(Fabric group) {
            return AllGatherMatmul.on(group).computeWorkers(world.cores().cores());
        }

        @Override
        public void close() {}
    }

    /** A site on a GPU. */
    final class Device extends CudaSite implements SourceSite<DeviceMatrix> {

        Device(Transport world) {
            super(world);
        }

        @Override
        public void copy(Matrix from, DeviceMatrix to) {
            to.upload(from, stream());
        }

        @Override
        public void poison(DeviceMatrix matrix) {
            check().poison(matrix);
        }

        @Override
        public Runnable plainCopy(long bytes, Arena arena) {
            long words = Math.max(1, bytes / Float.BYTES);
            DeviceMatrix from = allocate(DType.FP32, 1, words);
            DeviceMatrix to = allocate(DType.FP32, 1, words);
            return () -> {
                to.copyFrom(from, stream());
                stream().synchronize();
            };
        }

        @Override
        public Place<DeviceMatrix> place() {
            return Place.on(gpu());
        }

        @Override
        public HelionCall.Calls<DeviceMatrix> helion(
                At<DeviceMatrix> at, int splits, Helion.Config config) {
            return HelionCall.onDevice(at, this, splits, config);
        }

        @Override
        public OperatorBuilder<DeviceMatrix, ?> operators(Fabric group) {
            return CudaAllGatherMatmul.on(group, gpu());
        }
    }
}
