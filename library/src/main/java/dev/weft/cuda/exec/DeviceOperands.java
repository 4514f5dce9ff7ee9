package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.GatedProduct;
import dev.weft.cuda.kernel.ScaledB;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * An operator's Bs and results on the device, and the epilogue that makes these of the products.
 * Operators that are tried side by side share them. Used by the thread that prepares and calls the
 * operator.
 */
public final class DeviceOperands implements AutoCloseable {

    private final List<DeviceBuffer> owned = new ArrayList<>();
    private final List<DeviceMatrix> bs = new ArrayList<>();
    private final List<DeviceMatrix> products = new ArrayList<>();
    private final List<DeviceMatrix> results = new ArrayList<>();
    private final List<DeviceEpilogue.Rows> finished = new ArrayList<>();
    private DeviceEpilogue epilogue;

    private final Map<Integer, GatedProduct.Scales> scales = new HashMap<>();

    /**
     * One B, on the host, with scales or without, or on the device: one of the three is not null.
     */
    public record B(Matrix host, ScaledMatrix scaled, DeviceMatrix device, boolean transposed) {

        public B(Matrix host, DeviceMatrix device, boolean transposed) {
            this(host, null, device, transposed);
        }

        public DType dtype() {
            if (scaled != null) {
                return scaled.values().dtype();
            }
            return host == null ? device.dtype() : host.dtype();
        }
    }

    /**
     * Takes a B with scales, as the kernel reads it, and reserves room for its product.
     *
     * @param scaling of A
     */
    public void addScaled(B b, Scaling scaling, DType type, long m, long n, GpuStream stream) {
        try (Arena staging = Arena.ofConfined()) {
            ScaledB scaled = ScaledB.of(b.scaled(), b.transposed(), scaling, staging);
            long k = scaled.values().cols();
            DeviceMatrix values = matrix(b.dtype(), n, k, stream);
            values.upload(scaled.values(), stream);
            Matrix ofB = scaled.scales();
            DeviceMatrix there = matrix(DType.FP32, 1, ofB.cols(), stream);
            there.upload(ofB, stream);
            scales.put(
                    bs.size(),
                    new GatedProduct.Scales(
                            there.address(),
                            scaling == Scaling.BLOCK,
                            ScaledMatrix.valuesAt(k, scaling)));
            bs.add(values);
        }
        products.add(matrix(type, m, n, stream));
    }

    /** The scales of that B; null if it has none. */
    public GatedProduct.Scales scales(int index) {
        return scales.get(index);
    }

    /**
     * Takes a B, and reserves room for its product of {@code m} x {@code n}. One on the device is
     * read where it lies if its rows are aligned; all others are copied.
     */
    public void add(B b, DType type, long m, long n, GpuStream stream) {
        addB(b, false, stream);
        products.add(matrix(type, m, n, stream));
    }

    /** Takes a B alone, and copies it in any case if {@code copies}. */
    public void addB(B b, boolean copies, GpuStream stream) {
        DeviceMatrix there = b.device();
        if (b.host() != null) {
            there = matrix(b.host().dtype(), b.host().rows(), b.host().cols(), stream);
            there.upload(b.host(), stream);
        } else if (copies || !there.isAligned()) {
            there = matrix(b.dtype(), b.device().rows(), b.device().cols(), stream);
            there.copyFrom(b.device(), stream);
            stream.synchronize();
        }
        bs.add(there);
    }

    /** Results are the products themselves. */
    public void finish() {
        results.addAll(products);
    }

    /**
     * Results are made of the products, which are fp32, as an epilogue says: in their place, if
     * they are of the same type, else in memory of their own.
     */
    public void finish(DeviceEpilogue with, boolean joins, DType outType, GpuStream stream) {
        epilogue = with;
        for (int i = 0; i < (joins ? 1 : products.size()); i++) {
            DeviceMatrix sums = products.get(i);
            DeviceMatrix result =
                    outType == DType.FP32
                            ? sums
                            : matrix(outType, sums.rows(), sums.cols(), stream);
            List<DeviceMatrix> second = joins ? List.of(products.get(1)) : List.of();
            results.add(result);
            finished.add(epilogue.rows(i, List.of(sums), second, result, 0));
        }
    }

    /** A call is about to be queued. */
    public void begin() {
        if (epilogue != null) {
            epilogue.begin();
        }
    }

    /** Queues the epilogue behind the products. */
    public void finish(GpuStream stream) {
        for (DeviceEpilogue.Rows rows : finished) {
            rows.launch(stream);
        }
    }

    private DeviceMatrix matrix(DType dtype, long rows, long cols, GpuStream stream) {
        long bytes = DeviceMatrix.alignedBytes(dtype, rows, cols);
        owned.add(DeviceBuffer.zeroed(bytes, stream));
        return DeviceMatrix.in(owned.getLast(), dtype, rows, cols);
    }

    /** How many results there are. */
    public int count() {
        return results.size();
    }

    public DeviceMatrix b(int index) {
        return bs.get(index);
    }

    /** All Bs. */
    public List<DeviceMatrix> bs() {
        return List.copyOf(bs);
    }

    /** The place of a product, of as many as there are Bs. */
    public DeviceMatrix product(int index) {
        return products.get(index);
    }

    public DeviceMatrix result(int index) {
        return results.get(index);
    }

    @Override
    public void close() {
        finished.forEach(DeviceEpilogue.Rows::close);
        if (epilogue != null) {
            epilogue.close();
        }
        owned.forEach(DeviceBuffer::close);
    }
}
