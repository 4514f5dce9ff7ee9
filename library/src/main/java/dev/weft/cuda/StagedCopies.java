package dev.weft.cuda;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaStreams;
import dev.weft.plan.Chunk;
import dev.weft.plan.Lane;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RowBlock;
import dev.weft.plan.Transfer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Copies through host memory. A stream brings this rank's chunks to its host memory; a thread tells
 * of each that is there; a thread for each lane moves chunks between hosts; and the caller queues
 * the copy of each that arrives on a second stream, in the order in which they are multiplied,
 * followed by its flag.
 *
 * <p>No stream waits for what is not queued: the copies out come first, those in when their rows
 * are there. {@link #issueRest} returns when all is queued, sent and fetched, so no thread of this
 * rank has anything left to ask of the device. Its waits are the fabric's, with its deadline and
 * its errors. One thread at a time.
 */
final class StagedCopies implements Copies {

    /** Between looks at whether the call has failed. */
    private static final long LOOK_NS = 100_000_000;

    /** What is queued ends within this time, or never. */
    private static final long SETTLE_NS = 5_000_000_000L;

    /** A device that gets nothing done must not pass for one that does. */
    private static final Runnable SILENCE = () -> {};

    private final Gpu gpu;
    private final StagedPeers peers;
    private final Transport fabric;
    private final StagedLayout layout;
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
    private final long entered = CudaStreams.createEvent(false, false);
    private final long outDone = CudaStreams.createEvent(false, false);
    private final long inDone = CudaStreams.createEvent(false, false);

    /** By own chunk: recorded behind its copy to host memory. */
    private final long[] staged;

    /** By flag: recorded behind its chunk's copy to the device; 0 where nobody asks. */
    private final long[] arrived;

    /** By flag: its chunk's turn among those that arrive. */
    private final int[] turns;

    private final List<StagedLane> lanes = new ArrayList<>();
    private final List<CallThread> threads = new ArrayList<>();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private volatile boolean closing;
    private int next;

    /**
     * @param fetched whether other ranks get rows, and so must know when they are staged
     * @param arrivalsAwaited whether {@link #awaitArrival} will be called
     * @param productNs the longest time that a call's product may take
     */
    StagedCopies(
            Gpu gpu,
            StagedPeers peers,
            RankPlan plan,
            boolean fetched,
            boolean arrivalsAwaited,
            long productNs) {
        this.gpu = gpu;
        this.peers = peers;
        this.fabric = peers.fabric();
        this.layout = peers.layout();
        this.productNs = productNs;
        this.heartbeat = peers::worked;
        this.own = new Chunk[plan.chunks().count(plan.rank())];
        Arrays.setAll(own, c -> plan.chunks().chunk(plan.rank(), c));
        this.arrivals = arrivals(plan);
        this.arriving = new Chunk[arrivals.size()];
        this.awaited = new Awaited[arrivals.size()];
        this.arrived = new long[plan.chunks().total()];
        this.turns = new int[plan.chunks().total()];
        for (int i = 0; i < arriving.length; i++) {
            Transfer transfer = arrivals.get(i);
            arriving[i] = plan.chunks().chunk(transfer.source(), transfer.chunk());
            awaited[i] = Awaited.chunk(bringer(transfer), transfer.source(), transfer.chunk());
            turns[transfer.tag()] = i;
            if (arrivalsAwaited) {
                arrived[transfer.tag()] = CudaStreams.createEvent(false, false);
            }
        }
        this.staged = new long[own.length];
        Arrays.setAll(staged, c -> CudaStreams.createEvent(false, false));
        this.rowGather = plan.pacing().anyGather() ? fabric.rowGather() : null;
        this.fetched = fetched || rowGather != null;
        startThreads(plan, rowGather);
    }

    /** The rank whose lane carries the transfer. */
    private static int bringer(Transfer transfer) {
        return transfer.initiator() == Transfer.Initiator.SENDER ? transfer.from() : transfer.to();
    }

    /** By tag: the rank whose lane brings the chunk to this one. */
    static int[] bringers(RankPlan plan) {
        int[] bringers = new int[plan.chunks().total()];
        for (Lane lane : plan.arrivals()) {
            lane.transfers().forEach(t -> bringers[t.tag()] = bringer(t));
        }
        return bringers;
    }

    /** In the order in which rows are multiplied; where that comes last, in that of the lanes. */
    static List<Transfer> arrivals(RankPlan plan) {
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

    private void startThreads(RankPlan plan, RowGather gather) {
        String name = "weft-" + peers.worldRank(plan.rank()) + "-";
        if (gather != null) {
            StagedGather all = new StagedGather(gather, fabric, peers.region(), layout, arrivals);
            threads.add(new CallThread(name + "gather", call -> gather(all, call), this::failed));
            return;
        }
        threads.add(new CallThread(name + "stage", this::stage, this::failed));
        int[] bringers = bringers(plan);
        for (Lane lane : plan.lanes()) {
            if (!lane.transfers().isEmpty()) {
                lanes.add(new StagedLane(fabric, peers.region(), layout, lane, bringers));
                String laneName = name + "lane-" + lane.index();
                threads.add(new CallThread(laneName, lanes.getLast(), this::failed));
            }
        }
    }

    /** Out and in. */
    @Override
    public int count() {
        return own.length + arriving.length;
    }

    @Override
    public void begin(int call, GpuStream stream, long free) {
        int parity = call & 1;
        CudaStreams.record(entered, stream.handle());
        CudaStreams.waitEvent(out.handle(), entered);
        CudaStreams.waitEvent(in.handle(), free);
        for (int c = 0; c < own.length; c++) {
            Copies.copyRows(
                    peers.hostShard(parity) + layout.inShard(own[c]),
                    peers.buffer(peers.rank(), parity) + layout.inGathered(own[c]),
                    layout.pitchBytes(),
                    layout.width(own[c]),
                    own[c].rows(),
                    out);
            CudaStreams.record(staged[c], out.handle());
        }
        next = 0;
        for (int i = 0; i < threads.size(); i++) {
            threads.get(i).start(call);
        }
    }

    @Override
    public void beginForArrivals(int call, GpuStream stream, long free) {
        begin(call, stream, free);
    }

    /** In one thread: what it has told of must have left before the fabric is busy gathering. */
    private void gather(StagedGather all, int call) {
        if (stage(call)) {
            all.accept(call);
        }
    }

    /**
     * On a thread of its own: tells of chunks that have come to host memory.
     *
     * @return false where the call has failed meanwhile
     */
    private boolean stage(int call) {
        gpu.bind();
        // The product of the call before may come first, and peers must know that this rank lives.
        EventWait.isDoneWithin(entered, productNs, heartbeat);
        for (int c = 0; c < staged.length; c++) {
            while (!EventWait.isDoneWithin(staged[c], LOOK_NS, SILENCE)) {
                if (closing || failure.get() != null) {
                    return false;
                }
            }
            // Release: pairs with the acquire of lanes, here or on the ranks that fetch.
            int value = layout.staged(call, peers.rank(), c);
            if (fetched) {
                fabric.publish(peers.region(), StagedLayout.STAGED_AT, value);
            } else {
                fabric.signal(peers.region(), peers.rank(), StagedLayout.STAGED_AT, value);
            }
            fabric.worked();
        }
        return true;
    }

    @Override
    public void issueRest(int call) {
        while (next < arriving.length) {
            issueNext(call);
        }
        for (int i = 0; i < threads.size(); i++) {
            threads.get(i).await();
        }
        if (failure.get() != null) {
            throw cause();
        }
    }

    private void issueNext(int call) {
        Chunk chunk = arriving[next];
        int tag = arrivals.get(next).tag();
        try {
            fabric.await(peers.region(), peers.rank(), layout.flagAt(tag), call, awaited[next]);
        } catch (RuntimeException e) {
            failed(e);
            throw cause();
        }
        long at = layout.inGathered(chunk);
        Copies.copyRows(
                peers.buffer(peers.rank(), call & 1) + at,
                peers.hostLanding(call & 1) + at,
                layout.pitchBytes(),
                layout.width(chunk),
                chunk.rows(),
                in);
        CudaStreams.writeValue32(in.handle(), peers.flags(peers.rank()) + 4L * tag, call);
        if (arrived[tag] != 0) {
            CudaStreams.record(arrived[tag], in.handle());
        }
        next++;
    }

    /** Any thread. The first failure is the cause of the others. */
    private void failed(Throwable e) {
        if (failure.compareAndSet(null, e)) {
            fabric.fail(e);
        }
    }

    private RuntimeException cause() {
        Throwable cause = failure.get();
        return cause instanceof RuntimeException e ? e : new IllegalStateException(cause);
    }

    @Override
    public void join(GpuStream stream) {
        CudaStreams.record(outDone, out.handle());
        CudaStreams.record(inDone, in.handle());
        CudaStreams.waitEvent(stream.handle(), outDone);
        CudaStreams.waitEvent(stream.handle(), inDone);
    }

    /** Queues the copies up to that of the flag, each when its rows have come. */
    @Override
    public void awaitArrival(int flag, int call, GpuStream stream) {
        while (next <= turns[flag]) {
            issueNext(call);
        }
        CudaStreams.waitEvent(stream.handle(), arrived[flag]);
    }

    private static void settle(GpuStream stream, long event) {
        CudaStreams.record(event, stream.handle());
        EventWait.isDoneWithin(event, SETTLE_NS, SILENCE);
    }

    @Override
    public void close() {
        closing = true;
        threads.forEach(CallThread::close);
        lanes.forEach(StagedLane::close);
        if (rowGather != null) {
            rowGather.close();
        }
        // What a call that failed half-way has queued must not outlive the memory that it copies.
        settle(out, outDone);
        settle(in, inDone);
        Arrays.stream(staged).forEach(CudaStreams::destroyEvent);
        Arrays.stream(arrived).filter(event -> event != 0).forEach(CudaStreams::destroyEvent);
        CudaStreams.destroyEvent(entered);
        CudaStreams.destroyEvent(outDone);
        CudaStreams.destroyEvent(inDone);
        out.close();
        in.close();
    }
}
