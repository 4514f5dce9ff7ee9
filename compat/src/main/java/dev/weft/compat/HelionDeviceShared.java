package dev.weft.compat;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.fabric.Fabric;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A symmetric matrix in device memory, and what its calls keep for later ones: the backend stream,
 * products with their schedules, and memory of closed results. So a repeated call reserves nothing
 * on the device. Calls follow each other in stream order, whatever their streams. Used by one
 * thread at a time.
 */
final class HelionDeviceShared extends HelionShared<DeviceMatrix> {

    /** How many products are kept; each holds its schedule, which is small. */
    private static final int MOST_PRODUCTS = 64;

    private final Gpu gpu;
    private final SymmetricBuffer buffer;
    private final ProgressGather gather;
    private final DeviceEvent end;
    private final Map<HelionProduct<DeviceMatrix, DeviceProgress>, ProgressMatmul> products =
            new LinkedHashMap<>(16, 0.75f, true);
    private final List<DeviceBuffer> idle = new ArrayList<>();
    private boolean closed;

    /** Collective. */
    HelionDeviceShared(Fabric group, Gpu gpu, long rows, long cols, DType dtype) {
        super(group, rows, cols, dtype);
        this.gpu = gpu;
        this.buffer = SymmetricBuffer.create(group, gpu, Math.max(1, rows * cols * dtype.bytes()));
        this.gather = new ProgressGather(group, gpu, buffer);
        this.end = new DeviceEvent();
    }

    /** This rank's GPU. */
    Gpu gpu() {
        return gpu;
    }

    @Override
    Place<DeviceMatrix> place() {
        return Place.on(gpu);
    }

    ProgressGather gather() {
        return gather;
    }

    @Override
    public DeviceMatrix of(int rank) {
        return new DeviceMatrix(buffer.address(rank), dtype(), rows(), cols(), cols());
    }

    /** Starts a call on {@code stream}: what is queued there comes after earlier calls. */
    void begin(GpuStream stream) {
        end.join(stream);
    }

    /** Ends a call on {@code stream}. */
    void end(GpuStream stream) {
        end.record(stream);
    }

    /** Memory of a closed result, or new memory. */
    DeviceBuffer take(long bytes) {
        for (int i = idle.size() - 1; i >= 0; i--) {
            if (idle.get(i).bytes() == bytes) {
                return idle.remove(i);
            }
        }
        return DeviceBuffer.allocate(bytes);
    }

    /** Keeps memory that a result no longer needs. */
    void give(DeviceBuffer memory) {
        if (closed) {
            memory.close();
        } else {
            idle.add(memory);
        }
    }

    /** The product, prepared now or by an earlier call. */
    ProgressMatmul product(HelionProduct<DeviceMatrix, DeviceProgress> wanted) {
        ProgressMatmul known = products.get(wanted);
        if (known != null) {
            return known;
        }
        if (products.size() >= MOST_PRODUCTS) {
            var eldest = products.entrySet().iterator().next();
            products.remove(eldest.getKey());
            eldest.getValue().close();
        }
        ProgressMatmul product = new ProgressMatmul(group(), gpu, wanted);
        products.put(wanted, product);
        return product;
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        gpu.bind();
        gather.close();
        products.values().forEach(ProgressMatmul::close);
        idle.forEach(DeviceBuffer::close);
        end.close();
        buffer.close();
    }
}
