package dev.weft.compat;

import dev.weft.cuda.DeviceBuffer;
import dev.weft.cuda.DeviceMatrix;
import java.util.List;

/**
 * What {@link HelionCuda#allGatherMatmul} gives: a call that is queued, and its matrices. Every
 * rank awaits it, before the next collective call on the group; then closes it. One thread at a
 * time.
 */
public final class HelionDeviceResult implements AutoCloseable {

    private final DeviceMatrix aOut;
    private final HelionDeviceGather gather;
    private final HelionDeviceProduct product;
    private final List<DeviceBuffer> fresh;

    /**
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
     * Blocks until both are there on this rank, and all ranks' shards may be written again.
     * Collective.
     */
    public void await() {
        product.await();
        gather.await();
    }

    /** Waits for what is under way and frees what the caller did not supply. */
    @Override
    public void close() {
        gather.close();
        product.close();
        fresh.forEach(DeviceBuffer::close);
    }
}
