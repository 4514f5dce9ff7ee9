package dev.weft.exec.host;

import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.util.BitSet;
import java.util.List;

/**
 * Takes the copies of one lane: for each in order, waits for what it needs and gives it to a mover,
 * which moves the rectangle and raises the signal at its destination. Raising it is a release. It
 * pairs with the acquire of all that wait for it: the destination's products and sums, and lanes
 * that pass the rows on.
 */
final class MoverWorker extends Worker implements AutoCloseable {

    private final HostCall call;
    private final RankSteps.Lane lane;
    private final BitSet[] wanted;
    private final Move[][] moves;
    private final int[] values;
    private final ChunkMover mover;
    private final long[] startNs;

    /** By copy: when it began and ended to wait; 0 if it did not have to. */
    private final long[] waitStartNs;

    private final long[] waitEndNs;
    private final Awaited[] waitedFor;

    /** By copy; written by whichever thread sees it end, read once all have ended. */
    private final long[] endNs;

    /** The version of the rows that the moves are for. */
    private int version;

    /** How many copies of the call the mover has been given. */
    private int given;

    /**
     * @param wanted by rank: the rows of a call that it needs, so that others stay; null if all do
     */
    MoverWorker(RankSteps.Lane lane, HostCall call, BitSet[] wanted) {
        super(new SpanLog("lane-" + lane.index(), 2 * lane.copies().size()));
        this.call = call;
        this.lane = lane;
        this.wanted = wanted;
        int count = lane.copies().size();
        this.moves = new Move[StepMemory.COPIES][count];
        this.values = new int[count];
        this.startNs = new long[count];
        this.waitStartNs = new long[count];
        this.waitEndNs = new long[count];
        this.waitedFor = new Awaited[count];
        this.endNs = new long[count];
        for (int i = 0; i < count; i++) {
            Step.Copy copy = lane.copies().get(i);
            values[i] = Math.toIntExact(copy.signal().value());
        }
        setMoves();
        this.mover = call.fabric.mover(this::ended);
    }

    /** For the rows of the call. A copy of no rows is a move, too: its signal is awaited. */
    private void setMoves() {
        version = call.rows.version();
        for (int i = 0; i < values.length; i++) {
            Step.Copy copy = lane.copies().get(i);
            Part from = copy.from();
            Part to = copy.to();
            long row = copy.firstRow();
            for (int half = 0; half < StepMemory.COPIES; half++) {
                moves[half][i] =
                        call.memory.move(
                                copy,
                                half,
                                rows(copy),
                                call.shift(from.rank(), from.buffer(), row),
                                call.shift(to.rank(), to.buffer(), row),
                                wanted == null ? null : wanted[to.rank()],
                                call.rows.at(row));
            }
        }
    }

    /** Up to the last row that the call has, if there are gaps between shards. */
    private long rows(Step.Copy copy) {
        long row = copy.firstRow();
        long count = copy.from().rows();
        boolean compact = call.isCompact(copy.from().buffer());
        boolean unlike = compact != call.isCompact(copy.to().buffer());
        long rows = 0;
        for (long done = 0; done < count; ) {
            long span = call.ofOneShard(row + done, count - done);
            if (unlike && span < count) {
                throw new UnsupportedOperationException(
                        "a copy of rows of several shards to where they have no gaps, in a call of"
                                + " fewer rows: expected an algorithm that copies each by itself");
            }
            long has = call.count(row + done, span);
            rows = compact ? rows + has : has > 0 ? done + has : rows;
            done += span;
        }
        return rows;
    }

    @Override
    public void run() {
        log.clear();
        given = 0;
        if (call.view == View.COMPUTE_ONLY) {
            return;
        }
        if (version != call.rows.version()) {
            setMoves();
        }
        int copy = StepMemory.copy(call.number);
        int before = (call.number - 1) * call.memory.stride();
        for (int i = 0; i < values.length; i++) {
            awaitNeeds(i);
            startNs[i] = System.nanoTime();
            mover.move(i, moves[copy][i], before + values[i], before + values[i]);
            given = i + 1;
        }
        mover.awaitAll();
        logSpans();
    }

    private void awaitNeeds(int i) {
        List<Need> needs = lane.needs().get(i);
        waitStartNs[i] = 0;
        for (int n = 0; n < needs.size(); n++) {
            Need need = needs.get(n);
            if (!call.hasReached(need)) {
                if (waitStartNs[i] == 0) {
                    waitStartNs[i] = System.nanoTime();
                    waitedFor[i] = need.what();
                }
                call.await(need);
                waitEndNs[i] = System.nanoTime();
            }
        }
    }

    /** Notes that the copy's source is free again. Thread-safe. */
    private void ended(int i) {
        endNs[i] = System.nanoTime();
        call.end(lane.ends().get(i));
        call.fabric.worked();
    }

    /**
     * What was moved in the call, for an error. The lane must not be running.
     *
     * @param plans of all ranks, whose buffers have names
     */
    FailureReport.Sent sent(List<StepPlan> plans) {
        return SentRuns.of(toString(), given, values.length, i -> run(lane.copies().get(i), plans));
    }

    private FailureReport.Run run(Step.Copy copy, List<StepPlan> plans) {
        int chunk = call.names.chunk(copy.firstRow(), copy.from().firstCol());
        return new FailureReport.Run(
                RankSteps.what(plans, copy.to()),
                call.fabric.worldRank(copy.from().rank()),
                call.fabric.worldRank(copy.to().rank()),
                call.fabric.worldRank(call.names.source(copy.firstRow())),
                chunk,
                chunk);
    }

    /** Closes the mover; no call may be running. */
    @Override
    public void close() {
        mover.close();
    }

    /**
     * Logs one span after the other, though several moves may run at once: a move's span is the
     * time in which it was the oldest of them, and a wait's only what was left idle.
     */
    private void logSpans() {
        long free = 0;
        for (int i = 0; i < values.length; i++) {
            Step.Copy copy = lane.copies().get(i);
            long waited = Math.max(waitStartNs[i], free);
            if (waitStartNs[i] != 0 && waited < waitEndNs[i]) {
                log(copy, Timeline.Kind.WAIT, waitedFor[i].writer(), -1, 0, waited, waitEndNs[i]);
                free = waitEndNs[i];
            }
            int to = copy.to().rank();
            int peer = to == call.rank() ? copy.from().rank() : to;
            long from = Math.max(startNs[i], free);
            free = Math.max(from, endNs[i]);
            long bytes = moves[0][i].bytes();
            log(copy, Timeline.Kind.TRANSFER, peer, to, bytes, from, free);
        }
    }

    private void log(
            Step.Copy copy, Timeline.Kind kind, int peer, int to, long bytes, long from, long end) {
        int source = call.names.source(copy.firstRow());
        log.add(
                kind,
                source,
                peer,
                to,
                call.names.chunk(copy.firstRow(), copy.from().firstCol()),
                call.names.rowOfShard(source, copy.firstRow()),
                call.count(copy.firstRow(), copy.from().rows()),
                bytes,
                from,
                end);
    }
}
