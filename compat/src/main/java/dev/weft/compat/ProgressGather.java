package dev.weft.compat;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.FabricException.StallException;
import dev.weft.ffi.CudaMemory;
import dev.weft.process.WaitTime;
import java.util.Optional;

/**
 * Pulls the parts of a symmetric buffer into gathered A by the copy engines, on an urgent stream of
 * its own, and publishes a word of progress in stream order after every chunk. It serves gather
 * after gather. Streams wait for streams: the host meets the other ranks' hosts, twice for each
 * gather, but waits for no device. One thread at a time.
 */
final class ProgressGather implements AutoCloseable {

    private final Fabric group;
    private final Gpu gpu;
    private final SymmetricBuffer from;
    private final GpuStream stream;
    private final DeviceEvent ended = new DeviceEvent();
    private final boolean overlapping = CudaMemory.overlappingUnavailable().isEmpty();
    private boolean closed;

    /** Reserves what it needs; {@code gpu} is the one of this rank. */
    ProgressGather(Fabric group, Gpu gpu, SymmetricBuffer from) {
        this.group = group;
        this.gpu = gpu;
        this.from = from;
        gpu.bind();
        this.stream = GpuStream.urgent();
    }

    /**
     * Collective: queues all copies behind what is now on every rank's {@code caller}. The part of
     * rank r becomes the r-th of the group's equal parts of {@code to}, in {@code splitsPerRank}
     * chunks of equally many bytes, and word r x splits + split of {@code progress} tells of each.
     * What is on this gather's stream afterwards comes after the copies of all ranks.
     *
     * @param to as many bytes as all parts have together, without gaps; the arguments are checked
     */
    void start(DeviceMatrix to, DeviceProgress progress, int splitsPerRank, GpuStream caller) {
        long partBytes = to.rows() * to.cols() * to.dtype().bytes() / group.size();
        gpu.bind();
        from.written(caller);
        // Every rank has marked where its part is written: streams may wait for it.
        from.barrier(SymmetricBuffer.WRITTEN);
        from.awaitWritten(stream);
        pull(to, progress, partBytes, splitsPerRank);
        from.read(stream);
        // Every rank has queued its copies. Where ranks share a GPU, a product that waits must not
        // come before a peer's copies in one of the queues that the driver maps streams to.
        from.barrier(SymmetricBuffer.READ);
        from.awaitRead(stream);
        ended.record(stream);
    }

    private void pull(DeviceMatrix to, DeviceProgress progress, long partBytes, int splitsPerRank) {
        long chunkBytes = partBytes / splitsPerRank;
        for (int step = 0; step < group.size(); step++) {
            int source = HelionHostGather.source(group.rank(), step, group.size());
            for (int split = 0; split < splitsPerRank; split++) {
                long at = split * chunkBytes;
                copy(to.address() + source * partBytes + at, from.address(source) + at, chunkBytes);
                progress.publish(source * splitsPerRank + split, stream);
            }
        }
    }

    private void copy(long to, long source, long bytes) {
        if (bytes == 0) {
            return;
        }
        // A copy within one GPU may run as a kernel, which would starve behind a waiting grid.
        if (overlapping) {
            CudaMemory.copyOverlappingAsync(to, source, bytes, stream.handle());
        } else {
            CudaMemory.copyAsync(to, source, bytes, stream.handle());
        }
    }

    /** {@code other} continues when every rank's copies are done. */
    void join(GpuStream other) {
        gpu.bind();
        ended.join(other);
    }

    /**
     * Blocks until every rank's copies are done.
     *
     * @throws StallException if that takes longer than the group's deadline: the event of a process
     *     that has died may never come
     */
    void await() {
        gpu.bind();
        if (!ended.isDoneWithin(WaitTime.nanoseconds(group.deadline()), group::worked)) {
            int self = group.worldRank(group.rank());
            throw new StallException(
                    self, self, -1, -1, "the copies of all ranks on the GPU", group.deadline());
        }
    }

    /** The copies under way, whose end does not close this. */
    HelionGather running() {
        return new Running(this);
    }

    private record Running(ProgressGather copies) implements HelionGather {

        @Override
        public Optional<GpuStream> stream() {
            return Optional.of(copies.stream);
        }

        @Override
        public void await() {
            copies.await();
        }

        @Override
        public void close() {}
    }

    /** Waits for the copies under way; while they go on nothing is freed. */
    @Override
    public void close() {
        if (!closed) {
            await();
            closed = true;
            ended.close();
            stream.close();
        }
    }
}
