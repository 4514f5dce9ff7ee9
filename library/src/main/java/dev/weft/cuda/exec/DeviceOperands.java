package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.GatedProduct;
import dev.weft.cuda.kernel.PackedBlocks;
import dev.weft.cuda.kernel.ScaledB;
import dev.weft.ffi.CudaMemory;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.QuantizedMatrix;
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
    private boolean joins;

    /** Of the next calls. */
    private long rows;

    private final Map<Integer, GatedProduct.Scales> scales = new HashMap<>();
    private final Map<Integer, BlockType> blocks = new HashMap<>();

    /**
     * One B, on the host, with scales, in blocks or plain, on the device, or the first of other
     * operands: one of the five is not null.
     */
    public record B(
            Matrix host,
            ScaledMatrix scaled,
            QuantizedMatrix quantized,
            DeviceMatrix device,
            DeviceOperands loaded,
            boolean transposed) {

        public B(Matrix host, boolean transposed) {
            this(host, null, null, null, null, transposed);
        }

        public B(ScaledMatrix scaled, boolean transposed) {
            this(null, scaled, null, null, null, transposed);
        }

        public B(QuantizedMatrix quantized) {
            this(null, null, quantized, null, null, true);
        }

        public B(DeviceMatrix device, boolean transposed) {
            this(null, null, null, device, null, transposed);
        }

        public B(DeviceOperands loaded, boolean transposed) {
            this(null, null, null, null, loaded, transposed);
        }

        /** That of the values, if it is in blocks. */
        public DType dtype() {
            if (scaled != null) {
                return scaled.values().dtype();
            }
            if (quantized != null) {
                return DType.FP32;
            }
            return host == null ? onDevice().dtype() : host.dtype();
        }

        /** Null if it is not in blocks. */
        public BlockType blocks() {
            return loaded == null
                    ? quantized == null ? null : quantized.type()
                    : loaded.blocks.get(0);
        }

        private DeviceMatrix onDevice() {
            return loaded == null ? device : loaded.b(0);
        }
    }

    /**
     * Takes a B, and reserves room for its product of {@code m} x {@code n}. One on the device is
     * read where it lies if its rows are aligned; all others are copied.
     *
     * @param scaling of A; null if it has no scales
     */
    public void add(B b, Scaling scaling, DType type, long m, long n, GpuStream stream) {
        addB(b, scaling, false, stream);
        rows = m;
        products.add(matrix(type, m, n, stream));
    }

    /**
     * Takes a B alone, and copies one on the device in any case if {@code copies}. What is loaded
     * has memory of its own already, and is never copied.
     */
    public void addB(B b, Scaling scaling, boolean copies, GpuStream stream) {
        if (b.loaded() != null) {
            scales.put(bs.size(), b.loaded().scales(0));
            blocks.put(bs.size(), b.blocks());
            bs.add(b.loaded().b(0));
        } else if (b.scaled() != null) {
            addScaled(b, scaling, stream);
        } else if (b.quantized() != null) {
            addBlocks(b.quantized());
        } else if (b.host() != null) {
            bs.add(matrix(b.dtype(), b.host().rows(), b.host().cols(), stream));
            bs.getLast().upload(b.host(), stream);
        } else if (copies || !b.device().isAligned() || b.device().address() == 0) {
            bs.add(matrix(b.dtype(), b.device().rows(), b.device().cols(), stream));
            copy(b.device(), bs.getLast(), stream);
        } else {
            bs.add(b.device());
        }
    }

    private void addScaled(B b, Scaling scaling, GpuStream stream) {
        try (Arena staging = Arena.ofConfined()) {
            ScaledB scaled = ScaledB.of(b.scaled(), b.transposed(), scaling, staging);
            long k = scaled.values().cols();
            DeviceMatrix ofB = matrix(DType.FP32, 1, scaled.scales().cols(), stream);
            scales.put(
                    bs.size(),
                    new GatedProduct.Scales(
                            ofB.address(),
                            scaling == Scaling.BLOCK,
                            ScaledMatrix.valuesAt(k, scaling)));
            bs.add(matrix(b.dtype(), scaled.values().rows(), k, stream));
            upload(scaled, bs.size() - 1, stream);
        }
    }

    /**
     * The matrix tells where they are and what their values' shape is; nobody reads such values.
     */
    private void addBlocks(QuantizedMatrix b) {
        long bytes = PackedBlocks.bytes(b.type(), b.rows(), b.cols());
        owned.add(DeviceBuffer.allocate(Math.max(1, bytes)));
        blocks.put(bs.size(), b.type());
        long address = owned.getLast().address();
        bs.add(new DeviceMatrix(address, DType.FP32, b.rows(), b.cols(), b.cols()));
        upload(b, bs.getLast());
    }

    private static void upload(QuantizedMatrix from, DeviceMatrix to) {
        try (Arena staging = Arena.ofConfined()) {
            CudaMemory.copyToDevice(to.address(), PackedBlocks.pack(from, staging));
        }
    }

    private void upload(ScaledB from, int index, GpuStream stream) {
        bs.get(index).upload(from.values(), stream);
        Matrix ofB = from.scales();
        new DeviceMatrix(scales(index).ofB(), DType.FP32, 1, ofB.cols(), ofB.cols())
                .upload(ofB, stream);
    }

    private static void copy(DeviceMatrix from, DeviceMatrix to, GpuStream stream) {
        to.copyFrom(from, stream);
        stream.synchronize();
    }

    /** Writes a B of the same shape, type and kind of scales over the first one, a copy. */
    public void replaceFirst(B b, Scaling scaling, GpuStream stream) {
        if (b.scaled() != null) {
            try (Arena staging = Arena.ofConfined()) {
                upload(ScaledB.of(b.scaled(), b.transposed(), scaling, staging), 0, stream);
            }
        } else if (b.quantized() != null) {
            upload(b.quantized(), b(0));
        } else if (b.host() != null) {
            b(0).upload(b.host(), stream);
        } else {
            copy(b.device(), b(0), stream);
        }
    }

    /** The scales of that B; null if it has none. */
    public GatedProduct.Scales scales(int index) {
        return scales.get(index);
    }

    /** Results are the products themselves. */
    public void finish() {
        results.addAll(products);
    }

    /**
     * Results are made of the products, which are fp32, as an epilogue says: in their place, if
     * they are of the same type, else in memory of their own.
     */
    public void finish(DeviceEpilogue with, boolean joined, DType outType, GpuStream stream) {
        epilogue = with;
        joins = joined;
        for (int i = 0; i < (joins ? 1 : products.size()); i++) {
            DeviceMatrix sums = products.get(i);
            DeviceMatrix result =
                    outType == DType.FP32
                            ? sums
                            : matrix(
                                    outType, sums.rows(), epilogue.resultCols(sums.cols()), stream);
            results.add(result);
            finished.add(epilogue.rows(i, List.of(sums), second(products), result, 0));
        }
    }

    private List<DeviceMatrix> second(List<DeviceMatrix> of) {
        return joins ? List.of(of.get(1)) : List.of();
    }

    /** The next calls have so many rows in all. */
    public void setRows(long count) {
        if (rows == count) {
            return;
        }
        rows = count;
        List<DeviceMatrix> some = products.stream().map(one -> one.rows(0, count)).toList();
        for (int i = 0; i < finished.size(); i++) {
            finished.get(i).set(List.of(some.get(i)), second(some), result(i), 0);
        }
    }

    /** A call of so many rows is about to be queued. */
    public void begin(long count) {
        if (epilogue != null) {
            epilogue.begin(count);
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

    /** Bytes of memory of its own. */
    public long bytes() {
        return owned.stream().mapToLong(DeviceBuffer::bytes).sum();
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
        DeviceMatrix all = results.get(index);
        return all.rows() == rows ? all : all.rows(0, rows);
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
