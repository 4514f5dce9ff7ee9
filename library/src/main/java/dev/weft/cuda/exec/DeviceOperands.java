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

    /** One B, on the host or on the device: one of the two is null. */
    public record Side(Matrix host, DeviceMatrix device, boolean transposed) {

        public DType dtype() {
            return host == null ? device.dtype() : host.dtype();
        }
    }

    /**
     * Takes a B, and reserves room for its product of {@code m} x {@code n}. One on the device is
     * read where it lies if its rows are aligned; all others are copied.
     */
    public void add(Side b, DType outType, long m, long n, GpuStream stream) {
        DeviceMatrix side = b.device();
        if (b.host() != null) {
            side = matrix(b.host().dtype(), b.host().rows(), b.host().cols(), stream);
            side.upload(b.host(), stream);
        } else if (!side.isAligned()) {
            side = matrix(b.dtype(), b.device().rows(), b.device().cols(), stream);
            side.copyFrom(b.device(), stream);
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

    /** How many products there are. */
    public int count() {
        return products.size();
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
