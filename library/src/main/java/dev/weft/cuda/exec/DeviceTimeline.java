package dev.weft.cuda.exec;

import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.op.Timeline;
import dev.weft.plan.RankPlan;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * What a GPU did in one call, chunk by chunk and tile by tile. Tiles and their waits are by the
 * device's clock. So are arrivals, where Hopper's kernel watches them; otherwise those for which
 * tiles waited, and of the rest only the order and the bytes are known. One thread at a time.
 */
public final class DeviceTimeline implements AutoCloseable {

    /** The host's own note of a call's end is better than a reading that may be so far off. */
    private static final long CLOSE_NS = 100_000;

    private final int rank;
    private final int elementBytes;
    private final CopyList list;
    private final List<List<Copy>> lines;
    private final TileTimes.Owners owners;

    /** Whether this tells of copies; else threads of the host do. */
    private final boolean tellsCopies;

    /** Null without a kernel that reads the clock. */
    private final DeviceClock clock;

    /** Null where no kernel watches flags. */
    private final ArrivalTimes arrivals;

    /**
     * @param elementBytes of A
     * @param tellsCopies false where threads of the host tell of what they move
     * @param kernel whose module reads the clock; null for a library's
     * @param first the first product that is launched while rows arrive; null where none is
     */
    public DeviceTimeline(
            RankPlan plan,
            CopyList list,
            int elementBytes,
            boolean tellsCopies,
            GatedKernel kernel,
            DeviceProduct first) {
        this.rank = plan.rank();
        this.list = list;
        this.lines = list.arriving(plan);
        this.elementBytes = elementBytes;
        this.tellsCopies = tellsCopies;
        boolean watches =
                first != null
                        && kernel != null
                        && kernel.kind() == GatedKernel.Kind.HOPPER
                        && !lines.isEmpty();
        this.arrivals = watches ? new ArrivalTimes(lines) : null;
        if (watches) {
            first.watch(arrivals);
        }
        this.clock = kernel == null ? null : new DeviceClock(kernel.clockReader());
        int[] bringers = new int[list.flags()];
        lines.stream().flatMap(List::stream).forEach(copy -> bringers[copy.flag()] = copy.from());
        this.owners = new TileTimes.Owners(plan.chunks().shards(), list.origins(), bringers);
    }

    /**
     * A call that has ended, with none behind it. Null where nobody knows more than its begin and
     * its end.
     *
     * @param products that it launched
     * @param copiedNs when its copies had ended, since its begin; 0 if it copied nothing
     * @param seenNs when the host saw its end
     */
    Timeline of(
            List<DeviceProduct> products, CallEvents events, int call, long copiedNs, long seenNs) {
        long elapsedNs = events.elapsedNs(call);
        List<TileTimes> tiles = new ArrayList<>();
        for (DeviceProduct product : products) {
            product.times().ifPresent(tiles::add);
        }
        if (tiles.size() < products.size()) {
            return null;
        }
        DeviceClock.Moment start = clock == null ? null : clock.at(events.beginOf(call));
        if (start == null && !tiles.isEmpty()) {
            return null;
        }
        long zeroNs = start == null ? 0 : start.deviceNs();
        List<TileTimes.Times> times = new ArrayList<>();
        tiles.forEach(one -> times.add(one.read(zeroNs)));
        long shiftNs = shift(times, elapsedNs);
        times.replaceAll(one -> one.since(zeroNs + shiftNs));
        List<Timeline.Track> tracks = new ArrayList<>();
        if (tellsCopies && copiedNs > 0) {
            tracks.addAll(copies(times, zeroNs + shiftNs, copiedNs));
        }
        List<List<Timeline.Span>> workers = new ArrayList<>();
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
        if (times.isEmpty()) {
            return 0;
        }
        return first < 0 ? first : Math.max(0, last - elapsedNs);
    }

    private List<Timeline.Track> copies(List<TileTimes.Times> times, long zeroNs, long copiedNs) {
        long[] ends = new long[list.flags()];
        Arrays.fill(ends, -1);
        times.forEach(one -> one.addArrivals(ends));
        if (arrivals != null) {
            arrivals.read(zeroNs, ends);
        }
        List<Timeline.Track> tracks = new ArrayList<>();
        for (int line = 0; line < lines.size(); line++) {
            fill(lines.get(line), ends, copiedNs);
            List<Timeline.Span> spans = new ArrayList<>();
            long at = 0;
            for (Copy copy : lines.get(line)) {
                long end = Math.max(at, ends[copy.flag()]);
                spans.add(list.span(copy, rank, elementBytes, at, end));
                at = end;
            }
            tracks.add(new Timeline.Track("copies-" + line, spans));
        }
        return tracks;
    }

    /**
     * Gives the copies whose ends nobody saw a part of the time between those that were seen, by
     * their bytes: a line copies one after the other, at one rate.
     *
     * @param ends by flag; -1 where nobody saw it
     */
    static void fill(List<Copy> line, long[] ends, long lastNs) {
        long seenNs = 0;
        int first = 0;
        for (int i = 0; i < line.size(); i++) {
            long endNs = ends[line.get(i).flag()];
            boolean last = i == line.size() - 1;
            if (endNs < 0 && last) {
                endNs = Math.max(seenNs, lastNs);
            }
            if (endNs < 0) {
                continue;
            }
            double all = area(line.subList(first, i + 1));
            double done = 0;
            for (Copy copy : line.subList(first, i + 1)) {
                done += area(List.of(copy));
                ends[copy.flag()] = seenNs + Math.round((endNs - seenNs) * (done / all));
            }
            seenNs = endNs;
            first = i + 1;
        }
    }

    /** At least one element, so that copies of nothing have a place too. */
    private static double area(List<Copy> copies) {
        return copies.stream()
                .mapToDouble(copy -> Math.max(1.0, (double) copy.rows() * copy.cols()))
                .sum();
    }

    @Override
    public void close() {
        if (clock != null) {
            clock.close();
        }
        if (arrivals != null) {
            arrivals.close();
        }
    }
}
