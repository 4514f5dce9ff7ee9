package dev.weft.cuda.sums;

import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.DeviceEvent;
import dev.weft.cuda.exec.DeviceTimeline;
import dev.weft.cuda.exec.GatedProduct;
import dev.weft.cuda.exec.TileTimes;
import dev.weft.cuda.exec.TimedSpan;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.sums.SumCopyList.Move;
import dev.weft.op.Timeline;
import dev.weft.op.Timeline.Kind;
import dev.weft.op.Timeline.Span;
import dev.weft.plan.Chunk;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToLongFunction;

/**
 * What {@link HostSums} did in its latest call. Tiles and their waits are told by the device's
 * clock, copies by an event behind each. A copy is taken to begin when the one before it in the
 * same direction has ended and what it waits for is there. One thread at a time.
 */
final class SumTimeline implements AutoCloseable {

    private final RankPlan plan;
    private final SumCopyList list;
    private final DeviceTimeline tiles;
    private final boolean kept = TileTimes.areKept();
    private final boolean tellsCopies;
    private final List<Copied> in = new ArrayList<>();

    /** Those that are late come behind. */
    private final List<Copied> out = new ArrayList<>();

    private final List<Made> made = new ArrayList<>();

    /** A copy, its span without times, and its end. */
    private record Copied(Move move, Span span, TimedSpan at) {}

    /**
     * Rows that were added or rounded.
     *
     * @param added whether they are sent to others after that
     */
    private record Made(long row, long rows, boolean added, TimedSpan at) {}

    /**
     * @param staged whether threads of the host report what moves between the ranks
     */
    SumTimeline(RankPlan plan, SumCopyList list, boolean staged, GatedKernel kernel) {
        this.plan = plan;
        this.list = list;
        this.tellsCopies = kept && !staged;
        add(list.in(), plan.arrivals(), in);
        if (tellsCopies) {
            List<Move> sent = new ArrayList<>(list.out());
            sent.addAll(list.late());
            add(sent, plan.lanes(), out);
        }
        int[] bringers = new int[list.origins().size()];
        for (Copied one : in) {
            bringers[one.move().word()] = one.span().peer();
        }
        this.tiles =
                new DeviceTimeline(
                        plan.rank(),
                        new TileTimes.Owners(
                                plan.chunks().shards(), true, list.origins(), bringers),
                        kernel);
    }

    private void add(List<Move> moves, List<Lane> lanes, List<Copied> to) {
        Map<List<Long>, Integer> turns = new HashMap<>();
        for (Move move : moves) {
            List<Transfer> alike =
                    lanes.stream()
                            .flatMap(lane -> lane.transfers().stream())
                            .filter(t -> t.tag() == move.tag() && t.slot() == move.slot())
                            .toList();
            // The same sums go to several peers in the order of the plan.
            long product = move.product();
            List<Long> sums = List.of(product, move.row(), move.col(), (long) move.slot());
            Transfer transfer = alike.get(turns.merge(sums, 1, Integer::sum) - 1);
            to.add(new Copied(move, span(move, transfer), new TimedSpan()));
        }
    }

    private Span span(Move move, Transfer transfer) {
        Chunk chunk = plan.chunks().chunk(transfer.source(), transfer.chunk());
        int peer = transfer.from() == plan.rank() ? transfer.to() : transfer.from();
        return new Span(
                Kind.TRANSFER,
                chunk.source(),
                peer,
                transfer.to(),
                chunk.index(),
                chunk.firstRow(),
                chunk.rows(),
                move.rows() * move.cols() * Float.BYTES,
                0,
                0);
    }

    /** A copy to this rank is queued, with its flag. */
    void brought(int index, int call, GpuStream on) {
        if (tellsCopies) {
            in.get(index).at().endOnly(call, on);
        }
    }

    /** A copy from this rank is queued; late ones have the numbers behind the others. */
    void sent(int index, int call, GpuStream on) {
        if (tellsCopies) {
            out.get(index).at().endOnly(call, on);
        }
    }

    /** For rows that every call adds or rounds; null if no times are kept. */
    TimedSpan making(long row, long rows, boolean added) {
        if (!kept) {
            return null;
        }
        made.add(new Made(row, rows, added, new TimedSpan()));
        return made.getLast().at();
    }

    /**
     * The latest call, which has ended. Null if only its begin and end are known.
     *
     * @param movedFromNs when the first copy could begin
     */
    Timeline of(
            List<GatedProduct> launched,
            CallEvents events,
            int call,
            long movedFromNs,
            long seenNs) {
        DeviceEvent begin = events.beginOf(call);
        return kept
                ? tiles.of(
                        launched,
                        events,
                        call,
                        seenNs,
                        (times, zeroNs) -> tracks(times, call, begin, movedFromNs))
                : null;
    }

    private List<Timeline.Track> tracks(
            List<TileTimes.Times> times, int call, DeviceEvent begin, long movedFromNs) {
        long[] stored = new long[list.counters()];
        times.forEach(one -> one.addSignals(stored));
        long[] come = new long[list.origins().size()];
        long addedNs = 0;
        for (Copied one : in) {
            come[one.move().word()] = one.at().isOf(call) ? one.at().endNs(begin) : 0;
        }
        List<Span> finished = new ArrayList<>();
        for (Made one : made) {
            if (one.at().isOf(call)) {
                long endNs = one.at().endNs(begin);
                addedNs = one.added() ? Math.max(addedNs, endNs) : addedNs;
                finished.addAll(
                        made(shards(), one.row(), one.rows(), one.at().beginNs(begin), endNs));
            }
        }
        finished.sort(Comparator.comparingLong(Span::startNs));
        long lateNs = addedNs;
        List<Timeline.Track> tracks = new ArrayList<>();
        addTrack("copies-in", in, call, begin, movedFromNs, move -> 0, tracks);
        addTrack(
                "copies-out",
                out,
                call,
                begin,
                movedFromNs,
                move ->
                        move.word() < 0
                                ? lateNs
                                : move.fromSlot() == Reduction.PARTIAL
                                        ? stored[move.word()]
                                        : come[move.word()],
                tracks);
        if (!finished.isEmpty()) {
            tracks.add(new Timeline.Track("finish", finished));
        }
        return tracks;
    }

    private Shards shards() {
        return plan.chunks().shards();
    }

    private void addTrack(
            String name,
            List<Copied> copies,
            int call,
            DeviceEvent begin,
            long fromNs,
            ToLongFunction<Move> readyNs,
            List<Timeline.Track> to) {
        List<Span> spans = new ArrayList<>();
        long at = fromNs;
        List<Copied> ended = new ArrayList<>(copies);
        ended.removeIf(copy -> !copy.at().isOf(call));
        ended.sort(Comparator.comparingLong(copy -> copy.at().endNs(begin)));
        for (Copied copy : ended) {
            long end = Math.max(at, copy.at().endNs(begin));
            long ready = Math.clamp(readyNs.applyAsLong(copy.move()), at, end);
            if (ready > at) {
                spans.add(waiting(copy, at, ready));
            }
            spans.add(TimedSpan.at(copy.span(), ready, end));
            at = end;
        }
        if (!spans.isEmpty()) {
            to.add(new Timeline.Track(name, spans));
        }
    }

    /** A copy waits for this rank's product, or for what a peer brings. */
    private Span waiting(Copied copy, long fromNs, long untilNs) {
        Span span = copy.span();
        boolean forPeer = copy.move().word() >= 0 && copy.move().fromSlot() != Reduction.PARTIAL;
        int awaited = forPeer ? in.get(copy.move().word()).span().peer() : plan.rank();
        return new Span(
                Kind.WAIT,
                span.source(),
                awaited,
                -1,
                span.chunk(),
                span.firstRow(),
                span.rows(),
                0,
                fromNs,
                untilNs);
    }

    /** Rows of C that were made together, a span for each shard. */
    static List<Span> made(Shards shards, long row, long rows, long startNs, long endNs) {
        List<Span> spans = new ArrayList<>();
        for (int r = 0; r < shards.ranks(); r++) {
            long first = Math.max(row, shards.firstRow(r));
            long end = Math.min(row + rows, shards.firstRow(r) + shards.rows(r));
            if (first < end) {
                long inShard = first - shards.firstRow(r);
                spans.add(Span.local(Kind.COMPUTE, r, r, inShard, end - first, startNs, endNs));
            }
        }
        return spans;
    }

    @Override
    public void close() {
        tiles.close();
        in.forEach(one -> one.at().close());
        out.forEach(one -> one.at().close());
        made.forEach(one -> one.at().close());
    }
}
