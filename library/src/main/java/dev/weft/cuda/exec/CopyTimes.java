package dev.weft.cuda.exec;

import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.op.Timeline;
import dev.weft.plan.RankPlan;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * When each chunk of a gather came to this rank's GPU. Hopper's kernel watches the flags. With the
 * others, arrivals are known if tiles waited for them. Of the rest only the order, the bytes and
 * the end of the last one are known. One thread at a time.
 */
public final class CopyTimes implements AutoCloseable {

    private final RankPlan plan;
    private final int elementBytes;
    private final CopyList list;
    private final List<List<Copy>> lines;

    /** Whether copies are shown here; otherwise threads of the host report what they move. */
    private final boolean tells;

    /** Null if no kernel watches flags. */
    private final ArrivalTimes arrivals;

    /**
     * @param elementBytes of A
     * @param tells false if threads of the host report what they move
     * @param kernel null for a library's
     * @param first the first product that is launched while rows arrive; null if there is none
     */
    public CopyTimes(
            RankPlan plan,
            CopyList list,
            int elementBytes,
            boolean tells,
            GatedKernel kernel,
            DeviceProduct first) {
        this.plan = plan;
        this.tells = tells;
        this.list = list;
        this.lines = list.arriving(plan);
        this.elementBytes = elementBytes;
        boolean watches =
                tells
                        && first != null
                        && kernel != null
                        && kernel.kind() == GatedKernel.Kind.HOPPER
                        && !lines.isEmpty();
        this.arrivals = watches ? new ArrivalTimes(lines) : null;
        if (watches) {
            first.watch(arrivals);
        }
    }

    /** Whose rows the tiles of a product have. */
    public TileTimes.Owners owners() {
        int[] bringers = new int[list.flags()];
        lines.stream().flatMap(List::stream).forEach(copy -> bringers[copy.flag()] = copy.from());
        return new TileTimes.Owners(plan.chunks().shards(), false, list.origins(), bringers);
    }

    /**
     * By flag when its rows came in a call, since its begin; empty if copies are not shown here.
     *
     * @param times of its tiles
     * @param zeroNs the call's begin, by the device's clock
     * @param copiedNs when the last of it had come, since the call's begin; 0 if nothing came
     */
    long[] ends(List<TileTimes.Times> times, long zeroNs, long copiedNs) {
        if (!tells || copiedNs == 0) {
            return new long[0];
        }
        long[] ends = new long[list.flags()];
        Arrays.fill(ends, -1);
        times.forEach(one -> one.addArrivals(ends));
        if (arrivals != null) {
            arrivals.read(zeroNs, ends);
        }
        lines.forEach(line -> fill(line, 0, ends, copiedNs));
        return ends;
    }

    /**
     * @param ends as {@link #ends} gave them
     */
    List<Timeline.Track> tracks(long[] ends) {
        if (ends.length == 0) {
            return List.of();
        }
        List<Timeline.Track> tracks = new ArrayList<>();
        for (int line = 0; line < lines.size(); line++) {
            List<Timeline.Span> spans = new ArrayList<>();
            long at = 0;
            for (Copy copy : lines.get(line)) {
                long end = Math.max(at, ends[copy.flag()]);
                spans.add(list.span(copy, plan.rank(), elementBytes, at, end));
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
     * @param fromNs when the first could begin
     * @param ends by flag; -1 if it was not seen
     */
    public static void fill(List<Copy> line, long fromNs, long[] ends, long lastNs) {
        long seenNs = fromNs;
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
        if (arrivals != null) {
            arrivals.close();
        }
    }
}
