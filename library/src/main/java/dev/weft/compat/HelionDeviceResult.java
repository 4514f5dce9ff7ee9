package dev.weft.compat;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import java.util.List;

/**
 * What a call of {@link HelionCuda} that multiplies gives: work that is queued, and its matrices.
 * The rank awaits it, after a collective call before the next one on the group; then closes it. One
 * thread at a time.
 */
public final class HelionDeviceResult implements AutoCloseable {

    private final DeviceMatrix aOut;
    private final HelionDeviceGather gather;
    private final HelionDeviceProduct product;
    private final List<DeviceBuffer> fresh;

    /**
     * @param gather null where the caller fills A by other means
     * @param fresh memory that the caller did not supply
     */
    HelionDeviceResult(
            DeviceMatrix aOut,
            HelionDeviceGather gather,
            HelionDeviceProduct product,
            List<DeviceBuffer> fresh) {
        this.aOut = aOut;
        this.gather = gather;
        this.product = product;
        this.fresh = List.copyOf(fresh);
    }

    /** Gathered A, [M, K]; where the caller did not supply it, valid until this is closed. */
    public DeviceMatrix aOut() {
        return aOut;
    }

    /** Gathered A times B, [M, N], valid until this is closed. */
    public DeviceMatrix c() {
        return product.c();
    }

    /**
     * Blocks until both are there on this rank. After {@link HelionCuda#allGatherMatmul} it is
     * collective, and all ranks' shards may be written again.
     *
     * @throws dev.weft.fabric.StallException if a chunk did not come within the group's deadline
     */
    public void await() {
        product.await();
        if (gather != null) {
            gather.await();
        }
    }

    /** Waits for what is under way and frees what the caller did not supply. */
    @Override
    public void close() {
        if (gather != null) {
            gather.close();
        }
        product.close();
        fresh.forEach(DeviceBuffer::close);
    }
}
