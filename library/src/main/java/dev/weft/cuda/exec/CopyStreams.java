package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.StallException;
import dev.weft.ffi.CudaStreams;
import dev.weft.op.exec.SentRuns;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * A rank's lanes as streams. After each copy its flag is written in stream order, which goes past a
 * grid that fills the card, as copies do. Writing a value costs the stream 2 us where a copy of
 * four bytes costs 10 (H200), so flags are written. One thread at a time.
 */
public final class CopyStreams implements Copies {

    private final Peers peers;

    /** Null where the peers' rows lie in host memory, and are there whatever this rank does. */
    private final DevicePeers linked;

    private final RankPlan plan;
    private final Shards shards;
    private final DType dtype;
    private final long cols;
    private final CopyList list;
    private final List<List<Copy>> lanes;
    private final List<GpuStream> streams = new ArrayList<>();
    private final DeviceEvent[] done;
    private final DeviceEvent entered = new DeviceEvent();
    private final boolean[][] announced;
    private final int[] next;
    private final int[] bringer;
    private final int[] bringerLane;

    /**
     * By flag: recorded behind a copy that this rank pulls; null where nobody asks, or a peer
     * pushes.
     */
    private final DeviceEvent[] arrived;

    private final long deadlineNs;

    /** The latest call whose copies have begun. */
    private int begun;

    /**
     * @param arrivals whether {@link #awaitArrival} will be called
     */
    public CopyStreams(
            Peers peers,
            RankPlan plan,
            DType dtype,
            CopyList list,
            boolean arrivals,
            long deadlineNs) {
        this.peers = peers;
        this.linked = peers instanceof DevicePeers devices ? devices : null;
        this.plan = plan;
        this.shards = plan.chunks().shards();
        this.dtype = dtype;
        this.cols = plan.chunks().cols();
        this.list = list;
        this.lanes = list.lanes();
        this.deadlineNs = deadlineNs;
        this.next = new int[lanes.size()];
        this.bringer = new int[list.flags()];
        this.bringerLane = new int[list.flags()];
        for (Lane lane : plan.arrivals()) {
            for (Transfer transfer : lane.transfers()) {
                bringer[transfer.tag()] = transfer.from();
                bringerLane[transfer.tag()] = lane.index();
            }
        }
        this.arrived = new DeviceEvent[list.flags()];
        for (Copy copy : lanes.stream().flatMap(List::stream).toList()) {
            if (arrivals && copy.to() == plan.rank()) {
                arrived[copy.flag()] = new DeviceEvent();
            }
        }
        this.done = new DeviceEvent[lanes.size()];
        this.announced = new boolean[lanes.size()][shards.ranks()];
        for (int i = 0; i < done.length; i++) {
            streams.add(GpuStream.urgent());
            done[i] = new DeviceEvent();
        }
    }

    @Override
    public int count() {
        return lanes.stream().mapToInt(List::size).sum();
    }

    /**
     * Lets the lanes start, with the first copy of each that can.
     *
     * @param free event after which this call's buffer is free: rows that are there anyway do not
     *     wait for more, others for where {@code stream} is now
     */
    @Override
    public void begin(int call, GpuStream stream, DeviceEvent free) {
        begun = call;
        DeviceEvent after = linked == null ? free : entered;
        if (linked != null) {
            entered.record(stream);
        }
        for (int lane = 0; lane < lanes.size(); lane++) {
            Arrays.fill(announced[lane], false);
            next[lane] = 0;
            after.join(streams.get(lane));
            issueNext(lane, call);
        }
    }

    /**
     * All other copies. Lanes take turns, and one whose rows a peer has not queued yet lets the
     * others pass.
     */
    @Override
    public void issueRest(int call) {
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
                throw stalled(lanes.get(waiting).get(next[waiting]).awaitedFlag());
            } else {
                Thread.onSpinWait();
            }
        }
    }

    @Override
    public void beginForArrivals(int call, GpuStream stream, DeviceEvent free) {
        issue(call, stream, free);
    }

    @Override
    public void join(GpuStream stream) {
        for (int lane = 0; lane < lanes.size(); lane++) {
            done[lane].record(streams.get(lane));
            done[lane].join(stream);
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
            if (!linked.isPushed(copy.awaitedFlag(), call)) {
                return false;
            }
            int flag = copy.awaitedFlag();
            linked.awaitPushed(bringer[flag], bringerLane[flag], on);
        }
        next[lane]++;
        int other = copy.from() == plan.rank() ? copy.to() : copy.from();
        if (linked != null && !announced[lane][other]) {
            // Its rows are there to be read, or its buffer is free to be written.
            announced[lane][other] = true;
            linked.awaitRows(other, call, on);
        }
        if (copy.rows() > 0) {
            move(copy, call & 1, on);
        }
        CudaStreams.writeValue32(on.handle(), peers.flags(copy.to()) + 4L * copy.flag(), call);
        if (copy.to() != plan.rank()) {
            linked.pushed(copy.to(), copy.flag(), lane, call, on);
        } else if (arrived[copy.flag()] != null) {
            arrived[copy.flag()].record(on);
        }
        return true;
    }

    /**
     * Lets {@code stream} wait for the rows of a flag, by an event that is recorded: all copies of
     * this rank are queued, and what a peer pushes is waited for until it has queued it. A stream
     * that waited for the flag itself could stand before the copy in a queue of the hardware.
     */
    @Override
    public void awaitArrival(int flag, int call, GpuStream stream) {
        if (arrived[flag] != null) {
            arrived[flag].join(stream);
            return;
        }
        long start = System.nanoTime();
        while (!linked.isPushed(flag, call)) {
            if (System.nanoTime() - start > deadlineNs) {
                throw stalled(flag);
            }
            Thread.onSpinWait();
        }
        linked.awaitPushed(bringer[flag], bringerLane[flag], stream);
    }

    /** What a peer should have pushed. */
    private StallException stalled(int flag) {
        CopyList.Origin origin = list.origins().get(flag);
        int source = peers.worldRank(origin.source());
        return new StallException(
                peers.worldRank(plan.rank()),
                peers.worldRank(bringer[flag]),
                source,
                origin.chunk(),
                "chunk " + origin.chunk() + " of rank " + source,
                Duration.ofNanos(deadlineNs));
    }

    private void move(Copy copy, int parity, GpuStream on) {
        long pitch = DeviceMatrix.alignedPitch(dtype, cols) * dtype.bytes();
        long offset =
                (shards.firstRow(copy.source()) + copy.firstRow()) * pitch
                        + copy.firstCol() * dtype.bytes();
        long from = peers.buffer(copy.from(), parity) + offset;
        long to = peers.buffer(copy.to(), parity) + offset;
        Copies.copyRows(to, from, pitch, copy.cols() * dtype.bytes(), copy.rows(), on);
    }

    @Override
    public List<FailureReport.Sent> sent(int call) {
        List<FailureReport.Sent> all = new ArrayList<>();
        for (int lane = 0; begun == call && lane < lanes.size(); lane++) {
            List<Copy> copies = lanes.get(lane);
            all.add(
                    SentRuns.of(
                            "copies-" + lane, next[lane], copies.size(), i -> run(copies.get(i))));
        }
        return all;
    }

    private FailureReport.Run run(Copy copy) {
        int chunk = list.origins().get(copy.flag()).chunk();
        return new FailureReport.Run(
                peers.worldRank(copy.from()),
                peers.worldRank(copy.to()),
                peers.worldRank(copy.source()),
                chunk,
                chunk);
    }

    @Override
    public void close() {
        streams.forEach(GpuStream::close);
        Arrays.stream(done).forEach(DeviceEvent::close);
        Arrays.stream(arrived).filter(Objects::nonNull).forEach(DeviceEvent::close);
        entered.close();
    }
}
