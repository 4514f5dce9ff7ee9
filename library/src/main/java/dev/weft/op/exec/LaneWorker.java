package dev.weft.op.exec;

import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator.View;
import dev.weft.op.Timeline;
import dev.weft.plan.Chunk;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;

/**
 * Executes one lane: for each transfer in order, waits for what it needs and gives it to a mover,
 * which moves the chunk and raises its flag at the destination. Raising the flag is a release. It
 * pairs with the acquire of all that wait for the chunk: the destination's compute workers, and
 * lanes that forward.
 */
public final class LaneWorker extends Worker implements AutoCloseable {

    private static final int FOR_CHUNK = 0;
    private static final int FOR_BUFFER = 1;

    private final Transport fabric;
    private final LaneMemory memory;
    private final CallState state;
    private final Releases releases;
    private final boolean credited;
    private final Transfer[] transfers;
    private final Chunk[] chunks;
    private final Awaited[] needs;
    private final Awaited[] credits;
    private final int[] places;
    private final int[] counts;
    private final Move[][] moves;
    private final ChunkMover mover;
    private final long[] startNs;

    /** Two per transfer; 0 if it did not have to wait. */
    private final long[] waitStartNs;

    private final long[] waitEndNs;

    /** By transfer; written by whichever thread sees it end, read once all have ended. */
    private final long[] endNs;

    /** How many transfers of the call the mover has been given. */
    private int given;

    public LaneWorker(Lane lane, Workspace workspace) {
        this(
                lane,
                workspace.plan(),
                workspace.fabric(),
                new GatherLanes(workspace.memory(), workspace.arrivals()),
                workspace.state(),
                workspace.releases(),
                workspace.summaries().active()
                        ? workspace.memory().summaryAt(workspace.fabric().rank(), lane.index())
                        : -1);
    }

    /**
     * @param counterAt the word in which the lane counts what it has brought to each destination,
     *     or -1
     */
    public LaneWorker(
            Lane lane,
            RankPlan plan,
            Transport fabric,
            LaneMemory memory,
            CallState state,
            Releases releases,
            long counterAt) {
        // Two waits and a move each.
        super(new SpanLog("lane-" + lane.index(), 3 * lane.transfers().size()));
        this.fabric = fabric;
        this.memory = memory;
        this.state = state;
        this.releases = releases;
        this.credited = plan.storage() == RankPlan.Storage.PING_PONG;
        this.transfers = lane.transfers().toArray(Transfer[]::new);
        this.chunks = new Chunk[transfers.length];
        this.needs = new Awaited[transfers.length];
        this.credits = new Awaited[transfers.length];
        this.places = new int[transfers.length];
        this.counts = new int[plan.ranks()];
        this.moves = new Move[OperatorMemory.HALVES][transfers.length];
        this.startNs = new long[transfers.length];
        this.waitStartNs = new long[2 * transfers.length];
        this.waitEndNs = new long[2 * transfers.length];
        this.endNs = new long[transfers.length];
        for (int i = 0; i < transfers.length; i++) {
            Transfer transfer = transfers[i];
            chunks[i] = plan.chunks().chunk(transfer.source(), transfer.chunk());
            needs[i] = memory.need(transfer);
            credits[i] = Awaited.of(Awaited.BUFFER, transfer.to()).within(releases.mostAhead());
            places[i] = ++counts[transfer.to()];
            for (int half = 0; half < OperatorMemory.HALVES; half++) {
                moves[half][i] = memory.move(transfer, chunks[i], half, counterAt);
            }
        }
        this.mover = fabric.mover(this::ended);
    }

    @Override
    public void run() {
        log.clear();
        given = 0;
        if (state.view == View.COMPUTE_ONLY) {
            return;
        }
        for (int i = 0; i < transfers.length; i++) {
            awaitNeed(i);
            if (credited) {
                int released = releases.needed(state.call, transfers[i].credit());
                int to = transfers[i].to();
                await(i, to, OperatorMemory.RELEASED_AT, released, credits[i], FOR_BUFFER);
            }
            move(i);
            given = i + 1;
        }
        mover.awaitAll();
        logSpans();
    }

    /** What was moved in the call, for an error. The lane must not be running. */
    public FailureReport.Sent sent() {
        return SentRuns.of(toString(), given, transfers.length, i -> run(transfers[i]));
    }

    private FailureReport.Run run(Transfer transfer) {
        return new FailureReport.Run(
                memory.what(transfer),
                fabric.worldRank(transfer.from()),
                fabric.worldRank(transfer.to()),
                fabric.worldRank(transfer.source()),
                transfer.chunk(),
                transfer.chunk());
    }

    /** Closes the mover; no call may be running. */
    @Override
    public void close() {
        mover.close();
    }

    private void awaitNeed(int i) {
        Transfer transfer = transfers[i];
        if (needs[i] != null) {
            long word = memory.neededAt(transfer);
            int value = memory.needed(transfer, state.call);
            await(i, transfer.from(), word, value, needs[i], FOR_CHUNK);
        }
    }

    /** {@code which} is the number of the wait; a transfer has two. */
    private void await(int i, int home, long word, int value, Awaited need, int which) {
        int at = 2 * i + which;
        waitStartNs[at] = 0;
        if (fabric.reached(memory.region(), home, word, value, need)) {
            return;
        }
        waitStartNs[at] = System.nanoTime();
        fabric.await(memory.region(), home, word, value, need);
        waitEndNs[at] = System.nanoTime();
    }

    private void move(int i) {
        startNs[i] = System.nanoTime();
        mover.move(
                i,
                moves[OperatorMemory.half(state.call)][i],
                state.call,
                Summaries.value(state.call, places[i], counts[transfers[i].to()]));
    }

    /** Notes that the chunk's source is free again. Thread-safe. */
    private void ended(int i) {
        endNs[i] = System.nanoTime();
        releases.used(transfers[i].source());
        fabric.worked();
    }

    /**
     * Logs one span after the other, though several moves may run at once: a move's span is the
     * time in which it was the oldest of them, and a wait's only what was left idle.
     */
    private void logSpans() {
        long free = 0;
        for (int i = 0; i < transfers.length; i++) {
            free = logWait(i, FOR_CHUNK, needs[i], free);
            free = logWait(i, FOR_BUFFER, credits[i], free);
            Transfer transfer = transfers[i];
            int peer = transfer.to() == fabric.rank() ? transfer.from() : transfer.to();
            long from = Math.max(startNs[i], free);
            free = Math.max(from, endNs[i]);
            Move move = moves[OperatorMemory.half(state.call)][i];
            long bytes = move.rows() * move.rowBytes();
            log(i, Timeline.Kind.TRANSFER, peer, transfer.to(), bytes, from, free);
        }
    }

    private long logWait(int i, int which, Awaited need, long free) {
        int at = 2 * i + which;
        long from = Math.max(waitStartNs[at], free);
        if (waitStartNs[at] == 0 || from >= waitEndNs[at]) {
            return free;
        }
        log(i, Timeline.Kind.WAIT, need.writer(), -1, 0, from, waitEndNs[at]);
        return waitEndNs[at];
    }

    private void log(int i, Timeline.Kind kind, int peer, int to, long bytes, long from, long end) {
        Chunk c = chunks[i];
        log.add(kind, c.source(), peer, to, c.index(), c.firstRow(), c.rows(), bytes, from, end);
    }
}
