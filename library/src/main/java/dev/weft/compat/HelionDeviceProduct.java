package dev.weft.compat;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.DeviceProgress;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.ProgressMatmul;
import dev.weft.fabric.Fabric;

/** A product that is queued on the caller's stream, and its memory. One thread at a time. */
final class HelionDeviceProduct implements AutoCloseable {

    private final Fabric group;
    private final DeviceBuffer memory;
    private final DeviceMatrix c;
    private final ProgressMatmul product;
    private boolean closed;

    private HelionDeviceProduct(
            Fabric group, DeviceBuffer memory, DeviceMatrix c, ProgressMatmul product) {
        this.group = group;
        this.memory = memory;
        this.c = c;
        this.product = product;
    }

    /** Nothing is queued yet. What does not fit is refused by {@link ProgressMatmul#prepare}. */
    static HelionDeviceProduct prepare(
            DeviceMatrix a,
            HelionDeviceShared aShared,
            DeviceMatrix b,
            boolean bTransposed,
            DeviceProgress progress,
            int splitsPerRank,
            int rank) {
        aShared.gpu().bind();
        long n = bTransposed ? b.rows() : b.cols();
        DeviceBuffer memory = DeviceBuffer.allocate(Math.max(1, a.rows() * n * a.dtype().bytes()));
        DeviceMatrix c = new DeviceMatrix(memory.address(), a.dtype(), a.rows(), n, n);
        try {
            ProgressMatmul product =
                    ProgressMatmul.prepare(
                            aShared.group(),
                            aShared.gpu(),
                            a,
                            b,
                            bTransposed,
                            c,
                            progress,
                            splitsPerRank,
                            rank);
            return new HelionDeviceProduct(aShared.group(), memory, c, product);
        } catch (RuntimeException | Error e) {
            memory.close();
            throw e;
        }
    }

    void launch(GpuStream stream) {
        product.launch(stream);
    }

    /** [M, N], contiguous, of A's type; holds from {@link #await} on, until this is closed. */
    DeviceMatrix c() {
        return c;
    }

    /**
     * Blocks until the product is there.
     *
     * @throws dev.weft.fabric.StallException if a chunk did not come within the group's deadline
     */
    void await() {
        try {
            product.await();
        } catch (RuntimeException e) {
            group.fail(e);
            throw e;
        }
    }

    /** Waits for the product and frees it. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            product.close();
            memory.close();
        }
    }
}
