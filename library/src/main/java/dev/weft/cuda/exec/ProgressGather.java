package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.DeviceProgress;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.fabric.Fabric;
import dev.weft.ffi.CudaMemory;

/**
 * Pulls the parts of a symmetric buffer into gathered A by the copy engines, on an urgent stream of
 * its own, and publishes a word of progress in stream order after every chunk. Nothing that it
 * queues waits for a peer, so it always ends; who calls makes sure that the parts are written. One
 * thread at a time.
 */
public final class ProgressGather implements AutoCloseable {

    private final Fabric group;
    private final Gpu gpu;
    private final GpuStream stream;
    private final DeviceEvent entered = new DeviceEvent();
    private final DeviceEvent ended = new DeviceEvent();
    private final boolean overlapping = CudaMemory.overlappingUnavailable().isEmpty();
    private boolean closed;

    private ProgressGather(Fabric group, Gpu gpu) {
        this.group = group;
        this.gpu = gpu;
        this.stream = GpuStream.urgent();
    }

    /** Reserves what it needs; {@code gpu} is the one of this rank. */
    public static ProgressGather prepare(Fabric group, Gpu gpu) {
        gpu.bind();
        return new ProgressGather(group, gpu);
    }

    /** The rank whose part is pulled in step 0, 1, ...: the successor first, the own one last. */
    public static int source(int rank, int step, int ranks) {
        return (rank + step + 1) % ranks;
    }

    /**
     * Queues all copies behind what is on {@code caller} now: the part of rank r becomes the r-th
     * of the group's equal parts of {@code to}, in {@code splitsPerRank} chunks of equally many
     * bytes, and word r x splits + split of {@code progress} tells of each.
     *
     * @param to as many bytes as all parts have together, without gaps
     */
    public void start(
            SymmetricBuffer from,
            DeviceMatrix to,
            DeviceProgress progress,
            int splitsPerRank,
            GpuStream caller) {
        long partBytes = partBytes(to, group.size(), splitsPerRank);
        if (partBytes > from.bytes() || progress.size() < (long) group.size() * splitsPerRank) {
            throw new IllegalArgumentException(
                    ("parts of %s bytes and progress of %s words: expected at least %s bytes"
                                    + " and %s words")
                            .formatted(
                                    from.bytes(),
                                    progress.size(),
                                    partBytes,
                                    (long) group.size() * splitsPerRank));
        }
        long chunkBytes = partBytes / splitsPerRank;
        gpu.bind();
        entered.record(caller);
        entered.join(stream);
        for (int step = 0; step < group.size(); step++) {
            int source = source(group.rank(), step, group.size());
            for (int split = 0; split < splitsPerRank; split++) {
                long at = split * chunkBytes;
                copy(to.address() + source * partBytes + at, from.address(source) + at, chunkBytes);
                progress.publish(source * splitsPerRank + split, stream);
            }
        }
        ended.record(stream);
    }

    /** Bytes of one rank's rows in gathered A. */
    public static long partBytes(DeviceMatrix to, int ranks, int splitsPerRank) {
        long bytes = to.rows() * to.pitchBytes();
        if (to.rowPitch() != to.cols()
                || to.rows() % ranks != 0
                || splitsPerRank < 1
                || bytes / ranks % splitsPerRank != 0) {
            throw new IllegalArgumentException(
                    """
                    gathered A %s with row pitch %s of %s ranks in %s splits each: expected no \
                    gaps, ranks that divide the rows, and splits that divide the bytes of a shard"""
                            .formatted(to.describe(), to.rowPitch(), ranks, splitsPerRank));
        }
        return bytes / ranks;
    }

    private void copy(long to, long from, long bytes) {
        if (bytes == 0) {
            return;
        }
        // A copy within one GPU may run as a kernel, which would starve behind a waiting grid.
        if (overlapping) {
            CudaMemory.copyOverlappingAsync(to, from, bytes, stream.handle());
        } else {
            CudaMemory.copyAsync(to, from, bytes, stream.handle());
        }
    }

    /** The stream that copies; what is queued on it comes after the copies. */
    public GpuStream stream() {
        return stream;
    }

    /** {@code other} goes on when all copies are done. */
    public void join(GpuStream other) {
        gpu.bind();
        ended.join(other);
    }

    /** Blocks until all copies are done. */
    public void await() {
        gpu.bind();
        ended.await(group);
    }

    /** Waits for the copies under way. */
    @Override
    public void close() {
        if (!closed) {
            closed = true;
            await();
            entered.close();
            ended.close();
            stream.close();
        }
    }
}
