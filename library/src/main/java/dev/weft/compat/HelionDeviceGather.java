package dev.weft.compat;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.DeviceProgress;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.ProgressGather;
import dev.weft.fabric.Fabric;
import java.util.Optional;

/** A gather under way on a stream of its own, the backend stream. One thread at a time. */
final class HelionDeviceGather implements HelionGather {

    private final Fabric group;
    private final ProgressGather copies;
    private boolean awaited;

    private HelionDeviceGather(Fabric group, ProgressGather copies) {
        this.group = group;
        this.copies = copies;
    }

    /** Collective; the arguments are checked. Returns once every rank has queued its copies. */
    static HelionDeviceGather start(
            DeviceMatrix output,
            HelionDeviceShared inp,
            DeviceProgress progress,
            int splitsPerRank,
            GpuStream stream) {
        Fabric group = inp.group();
        ProgressGather copies = ProgressGather.prepare(group, inp.gpu());
        try {
            // Shards that peers wrote on their streams before they came are there afterwards.
            stream.synchronize();
            group.barrier();
            copies.start(inp.buffer(), output, progress, splitsPerRank, stream);
            // Where ranks share a GPU, a product that waits must not come before a peer's copies
            // in one of the queues that the driver maps streams to.
            group.barrier();
            return new HelionDeviceGather(group, copies);
        } catch (RuntimeException | Error e) {
            copies.close();
            throw e;
        }
    }

    @Override
    public Optional<GpuStream> stream() {
        return Optional.of(copies.stream());
    }

    /** {@code other} goes on when gathered A is complete. */
    void join(GpuStream other) {
        copies.join(other);
    }

    @Override
    public void await() {
        if (!awaited) {
            awaited = true;
            copies.await();
            group.barrier();
        }
    }

    @Override
    public void close() {
        copies.close();
    }
}
