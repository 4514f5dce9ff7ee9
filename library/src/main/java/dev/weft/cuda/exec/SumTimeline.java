package dev.weft.cuda.exec;

import dev.weft.cuda.exec.SumCopyList.Move;
import dev.weft.cuda.kernel.ArrivalTimes;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.GatedProduct;
import dev.weft.cuda.kernel.TileTimes;
import dev.weft.op.Timeline;
import dev.weft.op.Timeline.Kind;
import dev.weft.op.Timeline.Span;
import dev.weft.plan.Chunk;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * What {@link HostSums} did in its latest call. Tiles, their waits and the kernels that add and
 * round are known by the device's clock. Copies have no events, which would cost up to a tenth of a
 * short call (H200). Those to this rank are known if Hopper's kernel watched their flags or a tile
 * waited for them. Of those from this rank, only when the first could begin and the last had ended.
 * One thread at a time.
 */
final class SumTimeline implements AutoCloseable {

    private final RankPlan plan;
    private final SumCopyList list;
    private final DType partType;
    private final DeviceTimeline tiles;
    private final boolean kept = TileTimes.areKept();
    private final boolean tellsCopies;

    /** By copy, spans without times; those of late copies come last. */
    private final List<Span> in;

    private final List<Span> out;
    private final List<Move> sent = new ArrayList<>();
    private final List<ArrivalTimes> arrivals = new ArrayList<>();
    private final List<Made> made = new ArrayList<>();

    /**
     * Rows that a kernel adds or rounds.
     *
     * @param sent whether they are sent after that
     */
    private record Made(long row, long rows, boolean sent, DeviceEpilogue.Rows by) {}

    /**
     * What copies did in a call, since its begin.
     *
     * @param fromNs when the first could begin
     * @param inNs when those to this rank had ended
     * @param outNs when those from this rank had ended
     */
    record Moved(long fromNs, long inNs, long outNs) {}

    /**
     * @param partType of sums that are not whole
     * @param staged whether threads of the host report what moves between the ranks
     */
    SumTimeline(
            RankPlan plan, SumCopyList list, DType partType, boolean staged, GatedKernel kernel) {
        this.plan = plan;
        this.partType = partType;
        this.list = list;
        this.tellsCopies = kept && !staged;
        this.in = spans(list.in(), plan.arrivals());
        sent.addAll(list.out());
        sent.addAll(list.late());
        this.out = tellsCopies ? spans(sent, plan.lanes()) : List.of();
        int[] bringers = new int[list.origins().size()];
        for (int i = 0; i < in.size(); i++) {
            Move move = list.in().get(i);
            bringers[move.word()] = in.get(i).peer();
        }
        this.tiles =
                new DeviceTimeline(
                        plan.rank(),
                        new TileTimes.Owners(
                                plan.chunks().shards(), true, list.origins(), bringers),
                        kernel);
    }

    private List<Span> spans(List<Move> moves, List<Lane> lanes) {
        List<Span> spans = new ArrayList<>();
        Map<List<Long>, Integer> turns = new HashMap<>();
        Map<List<Integer>, List<Transfer>> transfers =
                lanes.stream()
                        .flatMap(lane -> lane.transfers().stream())
                        .collect(Collectors.groupingBy(t -> List.of(t.tag(), t.slot())));
        for (Move move : moves) {
            List<Transfer> alike = transfers.get(List.of(move.tag(), move.slot()));
            // The same sums go to several peers in the order of the plan.
            long product = move.product();
            List<Long> sums = List.of(product, move.row(), move.col(), (long) move.slot());
            spans.add(span(move, alike.get(turns.merge(sums, 1, Integer::sum) - 1)));
        }
        return spans;
    }

    private Span span(Move move, Transfer transfer) {
        Chunk chunk = plan.chunks().chunk(transfer.source(), transfer.chunk());
        int peer = transfer.from() == plan.rank() ? transfer.to() : transfer.from();
        DType type = move.fromSlot() == Reduction.WHOLE ? DType.FP32 : partType;
        return new Span(
                Kind.TRANSFER,
                chunk.source(),
                peer,
                transfer.to(),
                chunk.index(),
                chunk.firstRow(),
                chunk.rows(),
                move.rows() * move.cols() * type.bytes(),
                0,
                0);
    }

    /** Has a product note when the sums come that it waits for, if its kernel can. */
    void watch(int number, GatedProduct product, GatedKernel kernel) {
        int[] awaited =
                list.in().stream()
                        .filter(m -> m.product() == number && m.slot() == Reduction.PARTIAL)
                        .mapToInt(Move::word)
                        .toArray();
        boolean watches = tellsCopies && kernel.kind() == GatedKernel.Kind.HOPPER;
        if (watches && awaited.length > 0) {
            arrivals.add(new ArrivalTimes(List.of(awaited)));
            product.watch(arrivals.getLast());
        }
    }

    /** Rows that every call adds or rounds. */
    void makes(long row, long rows, boolean thenSent, DeviceEpilogue.Rows by) {
        made.add(new Made(row, rows, thenSent, by));
    }

    /**
     * The latest call, which has ended. Null if only its begin and end are known.
     *
     * @param moved null if it copied nothing
     */
    Timeline of(
            List<GatedProduct> launched, CallEvents events, int call, Moved moved, long seenNs) {
        return kept
                ? tiles.of(
                        launched,
                        events,
                        call,
                        seenNs,
                        (times, zeroNs) -> tracks(times, zeroNs, events.elapsedNs(call), moved))
                : null;
    }

    private List<Timeline.Track> tracks(
            List<TileTimes.Times> times, long zeroNs, long elapsedNs, Moved moved) {
        List<Span> finished = new ArrayList<>();
        long addedNs = 0;
        for (Made one : made) {
            List<Span> spans = spans(one.by(), shards(), one.row(), one.rows(), zeroNs, elapsedNs);
            finished.addAll(spans);
            if (one.sent() && !spans.isEmpty()) {
                addedNs = Math.max(addedNs, spans.getFirst().endNs());
            }
        }
        finished.sort(Comparator.comparingLong(Span::startNs));
        List<Timeline.Track> tracks = new ArrayList<>();
        if (tellsCopies && moved != null) {
            long[] come = new long[list.origins().size()];
            Arrays.fill(come, -1);
            times.forEach(one -> one.addArrivals(come));
            arrivals.forEach(one -> one.read(zeroNs, come));
            add(new Timeline.Track("copies-in", in(come, moved)), tracks);
            add(new Timeline.Track("copies-out", out(times, come, addedNs, moved)), tracks);
        }
        add(new Timeline.Track("finish", finished), tracks);
        return tracks;
    }

    private static void add(Timeline.Track track, List<Timeline.Track> to) {
        if (!track.spans().isEmpty()) {
            to.add(track);
        }
    }

    private Shards shards() {
        return plan.chunks().shards();
    }

    private List<Span> in(long[] come, Moved moved) {
        int[] flags = list.in().stream().mapToInt(Move::word).toArray();
        return CopyTimes.inOrder(in, flags, come, moved.fromNs(), moved.inNs());
    }

    /** They moved between when the first could leave and when the last had left. */
    private List<Span> out(List<TileTimes.Times> times, long[] come, long addedNs, Moved moved) {
        long[] stored = new long[list.counters()];
        times.forEach(one -> one.addSignals(stored));
        long readyNs = moved.outNs();
        for (Move move : sent) {
            long ns = addedNs;
            if (move.word() >= 0) {
                ns = move.fromSlot() == Reduction.PARTIAL ? stored[move.word()] : come[move.word()];
            }
            readyNs = Math.min(readyNs, ns);
        }
        long fromNs = Math.max(readyNs, moved.fromNs());
        return out.stream()
                .map(span -> TileTimes.at(span, fromNs, moved.outNs()).asEstimated())
                .toList();
    }

    /**
     * Rows of C that a kernel has made, a span for each shard; none if it ran in an earlier call.
     *
     * @param zeroNs the call's begin, by the device's clock
     */
    static List<Span> spans(
            DeviceEpilogue.Rows by,
            Shards shards,
            long row,
            long rows,
            long zeroNs,
            long elapsedNs) {
        long[] busy = by.busyNs();
        List<Span> spans = new ArrayList<>();
        for (int r = 0; busy[0] >= zeroNs && r < shards.ranks(); r++) {
            long first = Math.max(row, shards.firstRow(r));
            long end = Math.min(row + rows, shards.firstRow(r) + shards.rows(r));
            if (first < end) {
                long inShard = first - shards.firstRow(r);
                // The begin is read to a few microseconds.
                long untilNs = Math.min(Math.max(busy[0], busy[1]) - zeroNs, elapsedNs);
                long fromNs = Math.min(busy[0] - zeroNs, untilNs);
                spans.add(Span.local(Kind.COMPUTE, r, r, inShard, end - first, fromNs, untilNs));
            }
        }
        return spans;
    }

    @Override
    public void close() {
        tiles.close();
        arrivals.forEach(ArrivalTimes::close);
    }
}
