package dev.weft.cuda.exec;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.RowRange.Piece;
import dev.weft.exec.host.HostLanes;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaMemory;
import dev.weft.ffi.CudaStreams;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;

/**
 * Copies rows to other ranks and from them through host memory: see {@link HostStaging}. One stream
 * copies this rank's chunks to its host memory. The caller queues, on a second stream, the copy of
 * each chunk that arrives, in the order in which chunks are multiplied, followed by its flag.
 *
 * <p>No stream waits for what is not queued: copies out are queued first, copies in when their rows
 * are there. {@link #issueRest} returns when all is queued, sent and fetched. It waits by the
 * fabric, with the fabric's deadline and errors. Used by one thread at a time.
 */
public final class StagedCopies implements Copies {

    /** What is queued ends within this time, or never. */
    private static final long SETTLE_NS = 5_000_000_000L;

    private final Peers peers;
    private final HostLanes lanes;
    private final HostStaging staging;
    private final int rank;
    private final long pitchBytes;
    private final long elementBytes;
    private final Chunk[] own;
    private DeviceLayout layout;

    /** What arrives, in the order in which it is multiplied. */
    private final Step.Copy[] arrivals;

    private final int[] flags;
    private final Awaited[] awaited;
    private final GpuStream out = GpuStream.urgent();
    private final GpuStream in = GpuStream.urgent();
    private final DeviceEvent entered = new DeviceEvent();
    private final DeviceEvent outDone = new DeviceEvent();
    private final DeviceEvent inDone = new DeviceEvent();

    /** By flag: recorded behind its chunk's copy to the device; null where nobody asks. */
    private final DeviceEvent[] arrived;

    /** By flag: its chunk's turn among those that arrive. */
    private final int[] turns;

    private int next;

    /**
     * @param lanes between the ranks' host memories; closed with this
     * @param steps of all ranks
     * @param arrivalsAwaited whether {@link #awaitArrival} will be called
     * @param productNs the longest time that the product of the call before may take
     */
    public StagedCopies(
            Transport fabric,
            Peers peers,
            HostLanes lanes,
            List<StepPlan> steps,
            CopyList list,
            Chunks chunks,
            DeviceLayout layout,
            boolean arrivalsAwaited,
            long productNs) {
        this.peers = peers;
        this.lanes = lanes;
        this.rank = list.rank();
        this.elementBytes = layout.dtype().bytes();
        this.pitchBytes = layout.pitchBytes();
        this.own = new Chunk[chunks.count(rank)];
        Arrays.setAll(own, c -> chunks.chunk(rank, c));
        this.layout = layout;
        this.arrivals = arrivals(steps, list, chunks).toArray(Step.Copy[]::new);
        this.flags = new int[arrivals.length];
        this.awaited = new Awaited[arrivals.length];
        this.arrived = new DeviceEvent[list.flags()];
        this.turns = new int[list.flags()];
        for (int i = 0; i < arrivals.length; i++) {
            int flag = CopyListWriter.flag(arrivals[i], chunks);
            flags[i] = flag;
            turns[flag] = i;
            awaited[i] = lanes.arrival(arrivals[i]);
            if (arrivalsAwaited) {
                arrived[flag] = new DeviceEvent();
            }
        }
        this.staging = new HostStaging(fabric, lanes, own.length, productNs, 0, lanes::staged);
    }

    /** In the order in which rows are multiplied; where that comes last, in that of the lanes. */
    static List<Step.Copy> arrivals(List<StepPlan> steps, CopyList list, Chunks chunks) {
        List<Step.Copy> all = new ArrayList<>();
        for (StepPlan plan : steps) {
            DeviceSteps.of(plan, Step.Copy.class)
                    .filter(copy -> copy.to().rank() == list.rank())
                    .forEach(all::add);
        }
        int[] turns = new int[list.flags()];
        int turn = 0;
        // From the end: a chunk has the turn of the first of its blocks.
        for (RowRange range : list.ranges().reversed()) {
            for (Piece piece : range.pieces().reversed()) {
                turns[piece.flag()] = --turn;
            }
        }
        all.sort(Comparator.comparingInt(copy -> turns[CopyListWriter.flag(copy, chunks)]));
        return all;
    }

    @Override
    public void setRows(Shards shards) {
        layout = layout.with(shards);
        lanes.setRows(shards);
    }

    /** Out and in. */
    @Override
    public int count() {
        return own.length + arrivals.length;
    }

    @Override
    public void begin(int call, GpuStream stream) {
        entered.record(stream);
        entered.join(out);
        next = 0;
        staging.begin(call, out);
        Matrix host = lanes.matrix(StepPlan.A, call);
        long device = peers.buffer(rank, call & 1);
        for (int c = 0; c < own.length; c++) {
            Chunk chunk = own[c];
            long rows = layout.count(rank, chunk.firstRow(), chunk.rows());
            if (rows > 0) {
                CudaMemory.copy2dAsync(
                        host.data().address() + host.offset(chunk.firstRow(), chunk.firstCol()),
                        host.rowPitch() * elementBytes,
                        device + layout.at(rank, rank, chunk.firstRow(), chunk.firstCol()),
                        pitchBytes,
                        chunk.cols() * elementBytes,
                        rows,
                        out.handle());
            }
            staging.copiedOut(call, out);
        }
    }

    @Override
    public void beginForArrivals(int call, GpuStream stream) {
        begin(call, stream);
    }

    @Override
    public void issueRest(int call) {
        while (next < arrivals.length) {
            issueNext(call);
        }
        staging.end();
    }

    private void issueNext(int call) {
        Step.Copy copy = arrivals[next];
        staging.awaitArrival(copy, awaited[next]);
        Part to = copy.to();
        Matrix host = lanes.matrix(to.buffer(), call);
        int source = DeviceSteps.source(copy.firstRow(), layout.most());
        long inShard = copy.firstRow() - layout.most().firstRow(source);
        long rows = layout.count(source, inShard, to.rows());
        if (rows > 0) {
            CudaMemory.copy2dAsync(
                    peers.buffer(rank, call & 1) + layout.at(rank, source, inShard, to.firstCol()),
                    pitchBytes,
                    host.data().address() + host.offset(lanes.firstRow(copy), to.firstCol()),
                    host.rowPitch() * elementBytes,
                    to.cols() * elementBytes,
                    rows,
                    in.handle());
        }
        int flag = flags[next];
        CudaStreams.writeValue32(in.handle(), peers.flags(rank) + 4L * flag, call);
        if (arrived[flag] != null) {
            arrived[flag].record(in);
        }
        next++;
    }

    @Override
    public List<FailureReport.Sent> sent(int call) {
        return staging.sent(call);
    }

    @Override
    public boolean areTracked() {
        return true;
    }

    @Override
    public List<Timeline.Track> tracks(long startNs) {
        return staging.tracks(startNs);
    }

    @Override
    public void join(GpuStream stream) {
        outDone.record(out);
        inDone.record(in);
        outDone.join(stream);
        inDone.join(stream);
    }

    /** Queues the copies up to that of the flag, each when its rows have come. */
    @Override
    public void awaitArrival(int flag, int call, GpuStream stream) {
        while (next <= turns[flag]) {
            issueNext(call);
        }
        arrived[flag].join(stream);
    }

    private static void settle(GpuStream stream, DeviceEvent event) {
        event.record(stream);
        event.isDoneWithin(SETTLE_NS, () -> {});
    }

    @Override
    public void close() {
        try {
            // What a call that failed half-way has queued must not outlive the memory that it
            // copies, or the words that it writes.
            settle(out, outDone);
            settle(in, inDone);
        } finally {
            staging.close();
        }
        Arrays.stream(arrived).filter(Objects::nonNull).forEach(DeviceEvent::close);
        entered.close();
        outDone.close();
        inDone.close();
        out.close();
        in.close();
    }
}
