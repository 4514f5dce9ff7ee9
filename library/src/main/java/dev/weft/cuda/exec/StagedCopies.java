package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.kernel.DeviceEvent;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaStreams;
import dev.weft.op.Operator.View;
import dev.weft.op.Timeline;
import dev.weft.op.exec.GatherWorker;
import dev.weft.op.exec.LaneCall;
import dev.weft.op.exec.LaneWorker;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.op.exec.SpanLog;
import dev.weft.op.exec.Team;
import dev.weft.op.exec.Workspace;
import dev.weft.plan.Chunk;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;

/**
 * Copies rows to other ranks and from them through host memory. One stream copies this rank's
 * chunks to its host memory, and a thread signals each that is there. A thread for each lane moves
 * chunks between hosts. The caller queues, on a second stream, the copy of each chunk that arrives,
 * in the order in which chunks are multiplied, followed by its flag.
 *
 * <p>No stream waits for what is not queued: copies out are queued first, copies in when their rows
 * are there. {@link #issueRest} returns when all is queued, sent and fetched, so no thread of this
 * rank has anything left to ask of the device. It waits by the fabric, with the fabric's deadline
 * and errors. Used by one thread at a time.
 */
public final class StagedCopies implements Copies {

    /** Between looks at whether the call has failed. */
    private static final long LOOK_NS = 100_000_000;

    /** What is queued ends within this time, or never. */
    private static final long SETTLE_NS = 5_000_000_000L;

    /** A device that gets nothing done must not pass for one that does. */
    private static final Runnable SILENCE = () -> {};

    private final Gpu gpu;
    private final StagedPeers peers;
    private final Transport fabric;
    private final OperatorMemory memory;
    private final Workspace workspace;
    private final int rank;
    private final long pitchBytes;
    private final long elementBytes;
    private final Chunk[] own;
    private final List<Transfer> arrivals;
    private final Chunk[] arriving;
    private final Awaited[] awaited;
    private final RowGather rowGather;
    private final boolean fetched;
    private final long productNs;
    private final Runnable heartbeat;
    private final GpuStream out = GpuStream.urgent();
    private final GpuStream in = GpuStream.urgent();
    private final DeviceEvent entered = new DeviceEvent();
    private final DeviceEvent outDone = new DeviceEvent();
    private final DeviceEvent inDone = new DeviceEvent();

    /** By own chunk: recorded behind its copy to host memory. */
    private final DeviceEvent[] staged;

    /** By flag: recorded behind its chunk's copy to the device; null where nobody asks. */
    private final DeviceEvent[] arrived;

    /** By flag: its chunk's turn among those that arrive. */
    private final int[] turns;

    private final List<LaneWorker> lanes = new ArrayList<>();
    private final List<SpanLog> logs = new ArrayList<>();
    private final Team team;
    private final CallFailure failure;
    private volatile boolean closing;
    private int next;

    /**
     * @param fetched whether other ranks get rows, and so must know when they are staged
     * @param arrivalsAwaited whether {@link #awaitArrival} will be called
     * @param productNs the longest time that a call's product may take
     */
    public StagedCopies(
            Gpu gpu,
            StagedPeers peers,
            OperatorMemory memory,
            RankPlan plan,
            DType dtype,
            boolean fetched,
            boolean arrivalsAwaited,
            long productNs) {
        this.gpu = gpu;
        this.peers = peers;
        this.fabric = peers.fabric();
        this.failure = new CallFailure(fabric);
        this.memory = memory;
        this.workspace = Workspace.of(plan, fabric, memory, false);
        this.rank = plan.rank();
        this.elementBytes = dtype.bytes();
        this.pitchBytes = DeviceMatrix.alignedPitch(dtype, plan.chunks().cols()) * elementBytes;
        this.productNs = productNs;
        // Made once: waiting allocates nothing.
        this.heartbeat = fabric::worked;
        this.own = new Chunk[plan.chunks().count(rank)];
        Arrays.setAll(own, c -> plan.chunks().chunk(rank, c));
        this.arrivals = arrivals(plan);
        this.arriving = new Chunk[arrivals.size()];
        this.awaited = new Awaited[arrivals.size()];
        this.arrived = new DeviceEvent[plan.chunks().total()];
        this.turns = new int[plan.chunks().total()];
        for (int i = 0; i < arriving.length; i++) {
            Transfer transfer = arrivals.get(i);
            arriving[i] = plan.chunks().chunk(transfer.source(), transfer.chunk());
            awaited[i] = workspace.arrivals().of(transfer.source(), transfer.chunk());
            turns[transfer.tag()] = i;
            if (arrivalsAwaited) {
                arrived[transfer.tag()] = new DeviceEvent();
            }
        }
        this.staged = new DeviceEvent[own.length];
        Arrays.setAll(staged, c -> new DeviceEvent());
        this.rowGather = plan.pacing().anyGather() ? fabric.rowGather() : null;
        this.fetched = fetched || rowGather != null;
        String name = "weft-" + fabric.worldRank(rank);
        this.team = new Team(name, tasks(plan), task -> {}, failure::failed);
    }

    private Runnable[] tasks(RankPlan plan) {
        List<Runnable> tasks = new ArrayList<>();
        if (rowGather != null) {
            GatherWorker gather = new GatherWorker(rowGather, workspace);
            logs.add(gather.log());
            // In one thread: what it tells of must have left before the fabric is busy gathering.
            tasks.add(new Named("gather", () -> stageAnd(gather)));
        } else {
            tasks.add(new Named("stage", () -> stageAnd(() -> {})));
            for (Lane lane : plan.lanes()) {
                lanes.add(new LaneWorker(lane, workspace));
                logs.add(lanes.getLast().log());
                tasks.add(lanes.getLast());
            }
        }
        return tasks.toArray(Runnable[]::new);
    }

    /** A task that its thread is named after. */
    private record Named(String name, Runnable task) implements Runnable {

        @Override
        public void run() {
            task.run();
        }

        @Override
        public String toString() {
            return name;
        }
    }

    /** In the order in which rows are multiplied; where that comes last, in that of the lanes. */
    public static List<Transfer> arrivals(RankPlan plan) {
        List<Transfer> all = new ArrayList<>();
        plan.arrivals().forEach(lane -> all.addAll(lane.transfers()));
        if (!plan.pacing().gatherFirst()) {
            int[] turns = new int[plan.chunks().total()];
            int turn = 0;
            // From the end: a chunk has the turn of the first of its blocks.
            for (RowBlock block : plan.consumption().reversed()) {
                for (int c = block.chunkCount() - 1; c >= 0; c--) {
                    turns[plan.chunks().tag(block.source(), block.firstChunk() + c)] = --turn;
                }
            }
            all.sort(Comparator.comparingInt(transfer -> turns[transfer.tag()]));
        }
        return List.copyOf(all);
    }

    /** Out and in. */
    @Override
    public int count() {
        return own.length + arriving.length;
    }

    @Override
    public void begin(int call, GpuStream stream) {
        int parity = call & 1;
        entered.record(stream);
        entered.join(out);
        for (int c = 0; c < own.length; c++) {
            copy(
                    memory.shard(rank, call).data().address() + memory.inShard(own[c]),
                    peers.buffer(rank, parity) + memory.inLanding(own[c]),
                    own[c],
                    out);
            staged[c].record(out);
        }
        next = 0;
        workspace.state().call = call;
        workspace.state().view = View.PIPELINED;
        team.start();
    }

    private void copy(long to, long from, Chunk chunk, GpuStream on) {
        long width = chunk.cols() * elementBytes;
        Copies.copyRows(to, pitchBytes, from, pitchBytes, width, chunk.rows(), on);
    }

    @Override
    public void beginForArrivals(int call, GpuStream stream) {
        begin(call, stream);
    }

    /** On a thread of its own: tells of chunks that have come to host memory. */
    private void stageAnd(Runnable then) {
        int call = workspace.state().call;
        gpu.bind();
        // The product of the call before may come first, and peers must know that this rank lives.
        entered.isDoneWithin(productNs, heartbeat);
        for (int c = 0; c < staged.length; c++) {
            while (!staged[c].isDoneWithin(LOOK_NS, SILENCE)) {
                if (closing || failure.hasFailed()) {
                    return;
                }
            }
            // Release: pairs with the acquire of lanes, here or on the ranks that fetch.
            int value = memory.ready(call, rank, c);
            if (fetched) {
                fabric.publish(memory.region(), OperatorMemory.STAGED_AT, value);
            } else {
                fabric.signal(memory.region(), rank, OperatorMemory.STAGED_AT, value);
            }
            fabric.worked();
        }
        then.run();
    }

    @Override
    public void issueRest(int call) {
        while (next < arriving.length) {
            issueNext(call);
        }
        team.await();
        failure.check();
    }

    private void issueNext(int call) {
        Chunk chunk = arriving[next];
        int tag = arrivals.get(next).tag();
        long flag = memory.flagAt(chunk.source(), chunk.index());
        try {
            fabric.await(memory.region(), rank, flag, call, awaited[next]);
        } catch (RuntimeException e) {
            failure.failed(e);
            throw failure.cause();
        }
        long at = memory.inLanding(chunk);
        long landed = memory.gathered(rank, call).data().address();
        copy(peers.buffer(rank, call & 1) + at, landed + at, chunk, in);
        CudaStreams.writeValue32(in.handle(), peers.flags(rank) + 4L * tag, call);
        if (arrived[tag] != null) {
            arrived[tag].record(in);
        }
        next++;
    }

    @Override
    public List<FailureReport.Sent> sent(int call) {
        boolean begun = workspace.state().call == call;
        return begun ? new LaneCall(workspace, lanes).sent() : List.of();
    }

    @Override
    public List<Timeline.Track> tracks(long startNs) {
        return logs.stream().map(log -> log.track(startNs)).toList();
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
        event.isDoneWithin(SETTLE_NS, SILENCE);
    }

    @Override
    public void close() {
        closing = true;
        team.await();
        team.close();
        lanes.forEach(LaneWorker::close);
        if (rowGather != null) {
            rowGather.close();
        }
        // What a call that failed half-way has queued must not outlive the memory that it copies.
        settle(out, outDone);
        settle(in, inDone);
        Arrays.stream(staged).forEach(DeviceEvent::close);
        Arrays.stream(arrived).filter(Objects::nonNull).forEach(DeviceEvent::close);
        entered.close();
        outDone.close();
        inDone.close();
        out.close();
        in.close();
    }
}
