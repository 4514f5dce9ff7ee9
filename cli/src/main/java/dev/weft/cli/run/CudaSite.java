package dev.weft.cli.run;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceCheck;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.fabric.transport.Transport;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;

/** A rank's GPU, with a stream, checks, and memory until the close. Used by the rank's thread. */
public class CudaSite implements AutoCloseable {

    private final Gpu gpu;
    private final GpuStream stream;
    private final DeviceCheck check;
    private final List<DeviceBuffer> memory = new ArrayList<>();

    /**
     * @param world null for the first GPU
     */
    public CudaSite(Transport world) {
        // Never closed: kernels are loaded once per process, into this context.
        gpu = Gpu.open((world == null ? 0 : world.cores().place()) % Gpu.count());
        stream = GpuStream.create();
        check = new DeviceCheck(gpu);
    }

    public final Gpu gpu() {
        return gpu;
    }

    public final GpuStream stream() {
        return stream;
    }

    public final DeviceCheck check() {
        return check;
    }

    /** {@code cuda:} and the GPU's name. */
    public final String device() {
        return "cuda: " + gpu.name();
    }

    /** {@link #device}, with the kernel that multiplies 16-bit types for engine {@code gated}. */
    public final String deviceAndKernel() {
        return "%s, kernel %s".formatted(device(), KernelFamily.of(gpu).label());
    }

    /** New memory, valid until the close. */
    public final DeviceBuffer allocate(long bytes) {
        DeviceBuffer buffer = DeviceBuffer.allocate(bytes);
        memory.add(buffer);
        return buffer;
    }

    /** A new matrix, valid until the close. */
    public final DeviceMatrix allocate(DType type, long rows, long cols) {
        return DeviceMatrix.in(
                allocate(DeviceMatrix.alignedBytes(type, rows, cols)), type, rows, cols);
    }

    /** Copies the matrix to the device; valid until the close. */
    public final DeviceMatrix put(Matrix matrix) {
        DeviceMatrix here = allocate(matrix.dtype(), matrix.rows(), matrix.cols());
        here.upload(matrix, stream);
        return here;
    }

    /** Columns {@code from} to {@code to} of a matrix, where they are. */
    static DeviceMatrix columns(DeviceMatrix of, long from, long to) {
        return new DeviceMatrix(of.at(0, from), of.dtype(), of.rows(), to - from, of.rowPitch());
    }

    /** A copy of the matrix in host memory. */
    public final Matrix get(DeviceMatrix matrix, Arena arena) {
        Matrix host = Matrix.allocate(arena, matrix.dtype(), matrix.rows(), matrix.cols());
        matrix.download(host, stream);
        return host;
    }

    @Override
    public final void close() {
        check.close();
        memory.forEach(DeviceBuffer::close);
        stream.close();
    }
}
