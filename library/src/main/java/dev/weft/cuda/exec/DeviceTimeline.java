package dev.weft.cuda.exec;

import dev.weft.cuda.kernel.ArrivalTimes;
import dev.weft.cuda.kernel.DeviceClock;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.TileTimes;
import dev.weft.plan.Shards;
import dev.weft.trace.Timeline;
import dev.weft.trace.Timeline.Kind;
import dev.weft.trace.Timeline.Span;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * What a GPU did in one call, by the device's clock: tiles, their waits, and when chunks arrived.
 * Hopper's kernel watches the flags of chunks. With the others, an arrival is known if a tile
 * waited for it. Of the rest only the order and the end of the last one are known. One thread at a
 * time.
 */
public final class DeviceTimeline implements AutoCloseable {

    /** The host's own note of a call's end is better than a reading that may be so far off. */
    private static final long CLOSE_NS = 100_000;

    private final int rank;
    private final TileTimes.Owners owners;

    /** Null for a library's. */
    private final GatedKernel kernel;

    /** Null without a kernel that reads the clock. */
    private final DeviceClock clock;

    private final List<ArrivalTimes> watched = new ArrayList<>();

    /** What else a call did. Asked for tracks first. */
    public interface Others {

        /**
         * @param times of the call's tiles
         * @param zeroNs the call's begin, by the device's clock
         */
        List<Timeline.Track> tracks(List<TileTimes.Times> times, long zeroNs);
    }

    /**
     * @param kernel whose module reads the clock; null for a library's
     */
    public DeviceTimeline(int rank, TileTimes.Owners owners, GatedKernel kernel) {
        this.rank = rank;
        this.owners = owners;
        this.kernel = kernel;
        this.clock = kernel == null ? null : new DeviceClock(kernel.clockReader());
    }

    /**
     * Has a product note when chunks arrive, if its kernel can.
     *
     * @param lines flags of copies that arrive one after the other
     */
    public void watch(DeviceProduct product, List<int[]> lines) {
        boolean any = lines.stream().anyMatch(line -> line.length > 0);
        boolean can = kernel != null && kernel.family().watchesArrivals();
        if (any && can && TileTimes.areKept()) {
            watched.add(new ArrivalTimes(lines));
            product.watch(watched.getLast());
        }
    }

    /**
     * A call that has ended, with none behind it. Null if only its begin and end are known.
     *
     * @param products that it launched
     * @param seenNs when the host saw its end
     */
    public Timeline of(
            List<? extends DeviceProduct> products,
            CallEvents events,
            int call,
            long seenNs,
            Others others) {
        List<TileTimes> tiles = new ArrayList<>();
        products.forEach(product -> product.times().ifPresent(tiles::add));
        if (!TileTimes.areKept() || tiles.size() < products.size()) {
            return null;
        }
        long elapsedNs = events.elapsedNs(call);
        DeviceClock.Moment start = clock == null ? null : clock.at(events.beginOf(call));
        // Without it, times of earlier calls would be taken for those of this one.
        if (start == null && clock != null) {
            return null;
        }
        long zeroNs = start == null ? 0 : start.deviceNs();
        List<TileTimes.Times> times = new ArrayList<>();
        tiles.forEach(one -> times.add(one.read(zeroNs)));
        long shiftNs = shift(times, elapsedNs);
        times.replaceAll(one -> one.since(zeroNs + shiftNs));
        List<Timeline.Track> tracks = new ArrayList<>(others.tracks(times, zeroNs + shiftNs));
        List<List<Span>> workers = new ArrayList<>();
        times.forEach(one -> one.addSpans(owners, workers));
        for (int worker = 0; worker < workers.size(); worker++) {
            tracks.add(new Timeline.Track("compute-" + worker, workers.get(worker)));
        }
        boolean close = start != null && start.errorNs() < CLOSE_NS;
        long startNs = close ? start.hostNs() + shiftNs : seenNs - elapsedNs;
        return new Timeline(rank, startNs, elapsedNs, tracks);
    }

    /** The begin is read to a few microseconds; no tile can lie outside the call. */
    private static long shift(List<TileTimes.Times> times, long elapsedNs) {
        long first = Long.MAX_VALUE;
        long last = Long.MIN_VALUE;
        for (TileTimes.Times one : times) {
            first = Math.min(first, one.ends()[0]);
            last = Math.max(last, one.ends()[1]);
        }
        if (first == Long.MAX_VALUE) {
            return 0;
        }
        return first < 0 ? first : Math.max(0, last - elapsedNs);
    }

    /** By flag: when its chunk had come, since the call's begin; -1 if nothing saw that. */
    public long[] arrivals(List<TileTimes.Times> times, long zeroNs) {
        long[] ends = new long[owners.origins().size()];
        Arrays.fill(ends, -1);
        times.forEach(one -> one.addArrivals(ends));
        watched.forEach(one -> one.read(zeroNs, ends));
        return ends;
    }

    /**
     * The times of copies that follow each other. Those whose ends nobody saw have the times of the
     * next one that was seen, as estimates: they came between two ends that are known.
     *
     * @param flags of the copies
     * @param ends by flag; -1 if it was not seen, and then the latest that it can be
     * @param fromNs when the first could begin
     * @param lastNs when the last had ended
     */
    public static List<Span> inOrder(
            List<Span> untimed, int[] flags, long[] ends, long fromNs, long lastNs) {
        long latest = lastNs;
        boolean[] seen = new boolean[flags.length];
        for (int i = flags.length - 1; i >= 0; i--) {
            seen[i] = ends[flags[i]] >= 0;
            latest = seen[i] ? ends[flags[i]] : latest;
            ends[flags[i]] = latest;
        }
        List<Span> spans = new ArrayList<>();
        long from = fromNs;
        long at = fromNs;
        for (int i = 0; i < flags.length; i++) {
            if (ends[flags[i]] > at) {
                from = at;
                at = ends[flags[i]];
            }
            Span span = TileTimes.at(untimed.get(i), from, at);
            spans.add(seen[i] ? span : span.asEstimated());
        }
        return spans;
    }

    /**
     * Rows of C that a kernel has added or rounded, a span for each shard; none if it ran in an
     * earlier call.
     *
     * @param zeroNs the call's begin, by the device's clock
     */
    public static List<Span> finished(
            DeviceEpilogue.Rows by, Shards shards, long row, long zeroNs, long elapsedNs) {
        long[] busy = by.busyNs();
        List<Span> spans = new ArrayList<>();
        for (int r = 0; busy[0] >= zeroNs && r < shards.ranks(); r++) {
            long first = Math.max(row, shards.firstRow(r));
            long end = Math.min(row + by.rows(), shards.firstRow(r) + shards.rows(r));
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
        if (clock != null) {
            clock.close();
        }
        watched.forEach(ArrivalTimes::close);
    }
}
