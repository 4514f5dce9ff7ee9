package dev.weft.cuda;

import dev.weft.cuda.CopyList.Copy;
import dev.weft.fabric.StallException;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaStreams;
import dev.weft.plan.Lane;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.plan.Transfer;
import dev.weft.tensor.DType;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A rank's lanes as streams. After each copy its flag is written in stream order, which goes past a
 * grid that fills the card, as copies do. Writing a value costs the stream 2 us where a copy of
 * four bytes costs 10 (H200), so flags are written. One thread at a time.
 */
final class CopyStreams implements AutoCloseable {

    private final Peers peers;
    private final RankPlan plan;
    private final Shards shards;
    private final DType dtype;
    private final long cols;
    private final List<List<Copy>> lanes;
    private final List<GpuStream> streams = new ArrayList<>();
    private final long[] done;
    private final long entered = CudaStreams.createEvent(false, false);
    private final boolean[][] announced;
    private final int[] next;
    private final int[] bringer;
    private final int[] bringerLane;
    private final long deadlineNs;

    CopyStreams(
            Peers peers,
            RankPlan plan,
            DType dtype,
            List<List<Copy>> lanes,
            int flags,
            long deadlineNs) {
        this.peers = peers;
        this.plan = plan;
        this.shards = plan.chunks().shards();
        this.dtype = dtype;
        this.cols = plan.chunks().cols();
        this.lanes = lanes;
        this.deadlineNs = deadlineNs;
        this.next = new int[lanes.size()];
        this.bringer = new int[flags];
        this.bringerLane = new int[flags];
        for (Lane lane : plan.arrivals()) {
            for (Transfer transfer : lane.transfers()) {
                bringer[transfer.tag()] = transfer.from();
                bringerLane[transfer.tag()] = lane.index();
            }
        }
        this.done = new long[lanes.size()];
        this.announced = new boolean[lanes.size()][shards.ranks()];
        for (int i = 0; i < done.length; i++) {
            streams.add(GpuStream.urgent());
            done[i] = CudaStreams.createEvent(false, false);
        }
    }

    int count() {
        return lanes.stream().mapToInt(List::size).sum();
    }

    /**
     * Lets the lanes start, with the first copy of each that can.
     *
     * @param free event after which this call's buffer is free: rows that are there anyway do not
     *     wait for more, others for where {@code stream} is now
     */
    void begin(int call, GpuStream stream, long free) {
        long after = peers.rowsAreThere() ? free : entered;
        if (!peers.rowsAreThere()) {
            CudaStreams.record(entered, stream.handle());
        }
        for (int lane = 0; lane < lanes.size(); lane++) {
            Arrays.fill(announced[lane], false);
            next[lane] = 0;
            CudaStreams.waitEvent(streams.get(lane).handle(), after);
            issueNext(lane, call);
        }
    }

    /**
     * All other copies. Lanes take turns, and one whose rows a peer has not queued yet lets the
     * others pass.
     */
    void issueRest(int call) {
        long progressNs = System.nanoTime();
        while (true) {
            boolean issued = false;
            int waiting = -1;
            for (int lane = 0; lane < lanes.size(); lane++) {
                if (next[lane] < lanes.get(lane).size()) {
                    issued |= issueNext(lane, call);
                    waiting = lane;
                }
            }
            if (waiting < 0) {
                return;
            }
            if (issued) {
                progressNs = System.nanoTime();
            } else if (System.nanoTime() - progressNs > deadlineNs) {
                throw stalled(lanes.get(waiting).get(next[waiting]));
            } else {
                Thread.onSpinWait();
            }
        }
    }

    void issue(int call, GpuStream stream, long free) {
        begin(call, stream, free);
        issueRest(call);
    }

    /** {@code stream} goes on when all lanes have ended. */
    void join(GpuStream stream) {
        for (int lane = 0; lane < lanes.size(); lane++) {
            CudaStreams.record(done[lane], streams.get(lane).handle());
            CudaStreams.waitEvent(stream.handle(), done[lane]);
        }
    }

    /** Whether the lane's next copy could be queued. */
    private boolean issueNext(int lane, int call) {
        if (next[lane] == lanes.get(lane).size()) {
            return false;
        }
        Copy copy = lanes.get(lane).get(next[lane]);
        GpuStream on = streams.get(lane);
        if (copy.awaitedFlag() >= 0) {
            if (!peers.isPushed(copy.awaitedFlag(), call)) {
                return false;
            }
            int flag = copy.awaitedFlag();
            peers.awaitPushed(bringer[flag], bringerLane[flag], on);
        }
        next[lane]++;
        int other = copy.from() == peers.rank() ? copy.to() : copy.from();
        if (!announced[lane][other]) {
            // Its rows are there to be read, or its buffer is free to be written.
            announced[lane][other] = true;
            peers.awaitAnnounced(other, call, on);
        }
        if (copy.rows() > 0) {
            move(copy, call & 1, on);
        }
        CudaStreams.writeValue32(on.handle(), peers.flags(copy.to()) + 4L * copy.flag(), call);
        if (copy.to() != peers.rank()) {
            peers.pushed(copy.to(), copy.flag(), lane, call, on);
        }
        return true;
    }

    private StallException stalled(Copy copy) {
        int flag = copy.awaitedFlag();
        int source = peers.worldRank(copy.source());
        return new StallException(
                peers.worldRank(plan.rank()),
                peers.worldRank(bringer[flag]),
                source,
                flag - plan.chunks().tag(copy.source(), 0),
                "a chunk of rank " + source + " to forward",
                Duration.ofNanos(deadlineNs));
    }

    private void move(Copy copy, int parity, GpuStream on) {
        long pitch = DeviceMatrix.alignedPitch(dtype, cols) * dtype.bytes();
        long offset =
                (shards.firstRow(copy.source()) + copy.firstRow()) * pitch
                        + copy.firstCol() * dtype.bytes();
        long from = peers.buffer(copy.from(), parity) + offset;
        long to = peers.buffer(copy.to(), parity) + offset;
        long width = copy.cols() * dtype.bytes();
        if (width == pitch) {
            CudaMemory.copyAsync(to, from, copy.rows() * pitch, on.handle());
        } else {
            CudaMemory.copy2dAsync(to, pitch, from, pitch, width, copy.rows(), on.handle());
        }
    }

    @Override
    public void close() {
        streams.forEach(GpuStream::close);
        for (long event : done) {
            CudaStreams.destroyEvent(event);
        }
        CudaStreams.destroyEvent(entered);
    }
}
