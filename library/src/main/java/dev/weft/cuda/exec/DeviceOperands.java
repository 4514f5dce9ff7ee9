package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.ffi.CudaMemory;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.List;

/**
 * An operator's right-hand sides and products on the device. Operators that are tried side by side
 * share them. Used by the thread that prepares and calls the operator.
 */
public final class DeviceOperands implements AutoCloseable {

    private final List<DeviceBuffer> owned = new ArrayList<>();
    private final List<DeviceMatrix> sides = new ArrayList<>();
    private final List<DeviceMatrix> products = new ArrayList<>();

    /** A B in host memory, and room for its product. */
    public void add(Matrix b, DType outType, long m, long n, GpuStream stream) {
        DeviceMatrix copy = matrix(b.dtype(), b.rows(), b.cols(), stream);
        copy.upload(b, stream);
        sides.add(copy);
        products.add(matrix(outType, m, n, stream));
    }

    /** A B on the device, read where it lies if its rows are aligned; and room for its product. */
    public void add(DeviceMatrix b, DType outType, long m, long n, GpuStream stream) {
        DeviceMatrix side = b;
        if (!b.isAligned()) {
            side = matrix(b.dtype(), b.rows(), b.cols(), stream);
            side.copyFrom(b, stream);
            stream.synchronize();
        }
        sides.add(side);
        products.add(matrix(outType, m, n, stream));
    }

    private DeviceMatrix matrix(DType dtype, long rows, long cols, GpuStream stream) {
        long bytes = DeviceMatrix.alignedBytes(dtype, rows, cols);
        owned.add(zeroed(bytes, stream));
        return DeviceMatrix.in(owned.getLast(), dtype, rows, cols);
    }

    /** So that a product of rows that never came is not that of an earlier program. */
    public static DeviceBuffer zeroed(long bytes, GpuStream stream) {
        DeviceBuffer buffer = DeviceBuffer.allocate(bytes);
        CudaMemory.fill8Async(buffer.address(), (byte) 0, bytes, stream.handle());
        stream.synchronize();
        return buffer;
    }

    public DeviceMatrix side(int index) {
        return sides.get(index);
    }

    public DeviceMatrix product(int index) {
        return products.get(index);
    }

    @Override
    public void close() {
        owned.forEach(DeviceBuffer::close);
    }
}
