package dev.weft.cuda.exec.sum;

import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.DeviceSteps;
import dev.weft.cuda.exec.DeviceTimeline;
import dev.weft.cuda.exec.sum.SumCopyList.Move;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.GatedProduct;
import dev.weft.cuda.kernel.TileTimes;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import dev.weft.trace.Timeline.Span;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * What {@link HostSums} did in its latest call. Tiles, their waits and the kernels that add and
 * round are known by the device's clock. Copies have no events, which would cost up to a tenth of a
 * short call (H200). Those to this rank are known if Hopper's kernel watched their flags or a tile
 * waited for them. Of those from this rank, only when the first could begin and the last had ended.
 * One thread at a time.
 */
final class SumTimeline implements AutoCloseable {

    private final int rank;
    private final Chunks chunks;
    private final SumCopyList list;
    private final DeviceTimeline tiles;
    private final boolean showsCopies;

    /** By copy, spans without times; those of late copies come last. */
    private final List<Span> in;

    private final List<Span> out;
    private final List<Move> sent = new ArrayList<>();
    private final List<Made> made = new ArrayList<>();

    /**
     * Rows that a kernel adds or rounds.
     *
     * @param row the first one in C
     * @param sent whether they are sent after that
     */
    private record Made(long row, boolean sent, DeviceEpilogue.Rows by) {}

    /**
     * What copies did in a call, since its begin.
     *
     * @param fromNs when the first could begin
     * @param inNs when those to this rank had ended
     * @param outNs when those from this rank had ended
     */
    record Moved(long fromNs, long inNs, long outNs) {

        /** On the stream of the product, before and after it. */
        static final Moved IN_LINE = new Moved(-1, -1, -1);
    }

    /**
     * @param chunks what the rows are called
     * @param staged whether threads of the host report what moves between the ranks
     */
    SumTimeline(int rank, Chunks chunks, SumCopyList list, boolean staged, GatedKernel kernel) {
        this.rank = rank;
        this.chunks = chunks;
        this.list = list;
        this.showsCopies = !staged;
        this.in = list.in().stream().map(this::span).toList();
        list.leaving().forEach(sent::add);
        this.out = showsCopies ? sent.stream().map(this::span).toList() : List.of();
        int[] senders = new int[list.origins().size()];
        for (Move move : list.in()) {
            senders[move.word()] = move.copy().from().rank();
        }
        this.tiles =
                new DeviceTimeline(
                        rank,
                        new TileTimes.Owners(chunks.shards(), true, list.origins(), senders),
                        kernel);
    }

    private Span span(Move move) {
        int from = move.copy().from().rank();
        int to = move.copy().to().rank();
        int source = DeviceSteps.source(move.row(), shards());
        long row = move.row() - shards().firstRow(source);
        return new Span(
                Kind.TRANSFER,
                source,
                from == rank ? to : from,
                to,
                Math.toIntExact(row / chunks.chunkRows(source)),
                row,
                move.rows(),
                move.rows() * move.cols() * list.type(move.part().buffer()).bytes(),
                0,
                0);
    }

    /** Has a product note when the sums come that it waits for, if its kernel can. */
    void watch(int number, GatedProduct product) {
        int[] awaited =
                list.in().stream()
                        .filter(move -> move.product() == number && list.isMultiplied(move))
                        .mapToInt(Move::word)
                        .toArray();
        if (showsCopies) {
            tiles.watch(product, List.of(awaited));
        }
    }

    /** Rows that every call adds or rounds. */
    void makes(long row, boolean thenSent, DeviceEpilogue.Rows by) {
        made.add(new Made(row, thenSent, by));
    }

    /**
     * The latest call, which has ended. Null if only its begin and end are known.
     *
     * @param moved null if it copied nothing
     */
    Timeline of(
            List<GatedProduct> launched, CallEvents events, int call, Moved moved, long seenNs) {
        return tiles.of(
                launched,
                events,
                call,
                seenNs,
                (times, zeroNs) -> tracks(times, zeroNs, events.elapsedNs(call), moved));
    }

    private List<Timeline.Track> tracks(
            List<TileTimes.Times> times, long zeroNs, long elapsedNs, Moved moved) {
        List<Span> finished = new ArrayList<>();
        long addedNs = 0;
        for (Made one : made) {
            List<Span> spans =
                    DeviceTimeline.finished(one.by(), shards(), one.row(), zeroNs, elapsedNs);
            finished.addAll(spans);
            if (one.sent() && !spans.isEmpty()) {
                addedNs = Math.max(addedNs, spans.getFirst().endNs());
            }
        }
        finished.sort(Comparator.comparingLong(Span::startNs));
        List<Timeline.Track> tracks = new ArrayList<>();
        if (moved == Moved.IN_LINE) {
            long firstNs = times.stream().mapToLong(one -> one.ends()[0]).min().orElse(0);
            long lastNs = times.stream().mapToLong(one -> one.ends()[1]).max().orElse(0);
            long fromNs = Math.max(lastNs, addedNs);
            long untilNs =
                    finished.stream()
                            .mapToLong(Span::startNs)
                            .filter(ns -> ns > fromNs)
                            .min()
                            .orElse(elapsedNs);
            add(new Timeline.Track("copies-in", estimated(in, 0, firstNs)), tracks);
            add(new Timeline.Track("copies-out", estimated(out, fromNs, untilNs)), tracks);
        } else if (showsCopies && moved != null) {
            long[] come = tiles.arrivals(times, zeroNs);
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
        return chunks.shards();
    }

    private List<Span> in(long[] come, Moved moved) {
        int[] flags = list.in().stream().mapToInt(Move::word).toArray();
        return DeviceTimeline.inOrder(in, flags, come, moved.fromNs(), moved.inNs());
    }

    /** They moved between when the first could leave and when the last had left. */
    private List<Span> out(List<TileTimes.Times> times, long[] come, long addedNs, Moved moved) {
        long[] stored = new long[list.counters()];
        times.forEach(one -> one.addSignals(stored));
        long readyNs = moved.outNs();
        for (Move move : sent) {
            long ns = addedNs;
            if (move.word() >= 0) {
                ns = list.isMultiplied(move) ? stored[move.word()] : come[move.word()];
            }
            readyNs = Math.min(readyNs, ns);
        }
        long fromNs = Math.max(readyNs, moved.fromNs());
        return estimated(out, fromNs, moved.outNs());
    }

    private static List<Span> estimated(List<Span> spans, long fromNs, long untilNs) {
        return spans.stream()
                .map(span -> TileTimes.at(span, fromNs, untilNs).asEstimated())
                .toList();
    }

    @Override
    public void close() {
        tiles.close();
    }
}
