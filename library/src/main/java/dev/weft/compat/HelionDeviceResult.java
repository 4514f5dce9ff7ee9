package dev.weft.compat;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.DeviceProgress;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.ProgressMatmul;
import dev.weft.fabric.Fabric;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;

/** A product on the caller's stream, the gather that it waits for, and their memory. */
final class HelionDeviceResult implements HelionResult<DeviceMatrix> {

    private final Fabric group;
    private final DeviceMatrix aOut;
    private final DeviceMatrix c;
    private final DeviceProgress progress;
    private final ProgressMatmul product;
    private final List<DeviceBuffer> memory;
    private HelionDeviceGather gather;
    private boolean closed;

    private HelionDeviceResult(
            Fabric group,
            DeviceMatrix aOut,
            DeviceMatrix c,
            DeviceProgress progress,
            ProgressMatmul product,
            List<DeviceBuffer> memory) {
        this.group = group;
        this.aOut = aOut;
        this.c = c;
        this.progress = progress;
        this.product = product;
        this.memory = memory;
    }

    /**
     * Reserves what the caller does not supply; nothing is queued yet. What does not fit is refused
     * by {@link ProgressMatmul}.
     *
     * @param aOut or null, as {@code progress}, for memory of its own
     */
    static HelionDeviceResult prepare(
            DeviceMatrix aOut,
            HelionDeviceShared aShared,
            DeviceMatrix b,
            boolean bTransposed,
            DeviceProgress progress,
            int splitsPerRank,
            int rank) {
        Fabric group = aShared.group();
        aShared.gpu().bind();
        long m = Math.multiplyExact(aShared.rows(), (long) group.size());
        long n = bTransposed ? b.rows() : b.cols();
        List<DeviceBuffer> memory = new ArrayList<>();
        try {
            DType type = aShared.dtype();
            DeviceMatrix a = aOut == null ? allocate(type, m, aShared.cols(), memory) : aOut;
            DeviceMatrix c = allocate(a.dtype(), m, n, memory);
            DeviceProgress words = progress;
            if (words == null) {
                int size = group.size() * splitsPerRank;
                memory.add(DeviceBuffer.allocate((long) Integer.BYTES * size));
                words = new DeviceProgress(memory.getLast().address(), size);
            }
            ProgressMatmul product =
                    new ProgressMatmul(
                            group, aShared.gpu(), a, b, bTransposed, c, words, splitsPerRank, rank);
            return new HelionDeviceResult(group, a, c, words, product, memory);
        } catch (RuntimeException | Error e) {
            memory.forEach(DeviceBuffer::close);
            throw e;
        }
    }

    private static DeviceMatrix allocate(
            DType type, long rows, long cols, List<DeviceBuffer> memory) {
        memory.add(DeviceBuffer.allocate(Math.max(1, rows * cols * type.bytes())));
        return new DeviceMatrix(memory.getLast().address(), type, rows, cols, cols);
    }

    /** Queues gather and product; what follows on {@code stream} finds all of gathered A. */
    HelionDeviceResult gatherAndLaunch(HelionDeviceShared shared, int splits, GpuStream stream) {
        return orClose(
                () -> {
                    progress.reset(stream);
                    gather = HelionDeviceGather.start(aOut, shared, progress, splits, stream);
                    product.launch(stream);
                    gather.join(stream);
                });
    }

    /** Queues the product alone. */
    HelionDeviceResult launch(GpuStream stream) {
        return orClose(() -> product.launch(stream));
    }

    private HelionDeviceResult orClose(Runnable queue) {
        try {
            queue.run();
            return this;
        } catch (RuntimeException | Error e) {
            close();
            throw e;
        }
    }

    @Override
    public DeviceMatrix aOut() {
        return aOut;
    }

    @Override
    public DeviceMatrix c() {
        return c;
    }

    @Override
    public void await() {
        try {
            product.await();
        } catch (RuntimeException e) {
            group.fail(e);
            throw e;
        }
        if (gather != null) {
            gather.await();
        }
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            if (gather != null) {
                gather.close();
            }
            product.close();
            memory.forEach(DeviceBuffer::close);
        }
    }
}
