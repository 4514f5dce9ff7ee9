package dev.weft.cuda.exec;

import dev.weft.cuda.exec.CopyList.Copy;
import dev.weft.cuda.kernel.ArrivalTimes;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.TileTimes;
import dev.weft.op.Timeline;
import dev.weft.plan.Shards;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * When each chunk of a gather came to this rank's GPU. Hopper's kernel watches the flags. With the
 * others, arrivals are known if tiles waited for them. Of the rest only the order and the end of
 * the last one are known. One thread at a time.
 */
public final class CopyTimes implements AutoCloseable {

    private final Shards shards;
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
            Shards shards,
            CopyList list,
            int elementBytes,
            boolean tells,
            GatedKernel kernel,
            DeviceProduct first) {
        this.shards = shards;
        this.tells = tells;
        this.list = list;
        this.lines = list.arriving().stream().map(CopyList.Line::copies).toList();
        this.elementBytes = elementBytes;
        boolean watches =
                tells
                        && first != null
                        && kernel != null
                        && kernel.kind() == GatedKernel.Kind.HOPPER
                        && !lines.isEmpty();
        this.arrivals =
                watches
                        ? new ArrivalTimes(
                                lines.stream()
                                        .map(l -> l.stream().mapToInt(Copy::flag).toArray())
                                        .toList())
                        : null;
        if (watches) {
            first.watch(arrivals);
        }
    }

    /** Whose rows the tiles of a product have. */
    public TileTimes.Owners owners() {
        int[] bringers = new int[list.flags()];
        lines.stream().flatMap(List::stream).forEach(copy -> bringers[copy.flag()] = copy.from());
        return new TileTimes.Owners(shards, false, list.origins(), bringers);
    }

    /**
     * What came in a call; nothing if copies are not shown here.
     *
     * @param times of its tiles
     * @param zeroNs the call's begin, by the device's clock
     * @param copiedNs when the last of it had come, since the call's begin; 0 if nothing came
     */
    List<Timeline.Track> tracks(List<TileTimes.Times> times, long zeroNs, long copiedNs) {
        if (!tells || copiedNs == 0) {
            return List.of();
        }
        long[] ends = new long[list.flags()];
        Arrays.fill(ends, -1);
        times.forEach(one -> one.addArrivals(ends));
        if (arrivals != null) {
            arrivals.read(zeroNs, ends);
        }
        List<Timeline.Track> tracks = new ArrayList<>();
        for (int line = 0; line < lines.size(); line++) {
            List<Timeline.Span> untimed = new ArrayList<>();
            for (Copy copy : lines.get(line)) {
                untimed.add(list.span(copy, elementBytes, 0, 0));
            }
            int[] flags = lines.get(line).stream().mapToInt(Copy::flag).toArray();
            tracks.add(
                    new Timeline.Track(
                            "copies-" + line, inOrder(untimed, flags, ends, 0, copiedNs)));
        }
        return tracks;
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
    static List<Timeline.Span> inOrder(
            List<Timeline.Span> untimed, int[] flags, long[] ends, long fromNs, long lastNs) {
        long latest = lastNs;
        boolean[] seen = new boolean[flags.length];
        for (int i = flags.length - 1; i >= 0; i--) {
            seen[i] = ends[flags[i]] >= 0;
            latest = seen[i] ? ends[flags[i]] : latest;
            ends[flags[i]] = latest;
        }
        List<Timeline.Span> spans = new ArrayList<>();
        long from = fromNs;
        long at = fromNs;
        for (int i = 0; i < flags.length; i++) {
            if (ends[flags[i]] > at) {
                from = at;
                at = ends[flags[i]];
            }
            Timeline.Span span = TileTimes.at(untimed.get(i), from, at);
            spans.add(seen[i] ? span : span.asEstimated());
        }
        return spans;
    }

    @Override
    public void close() {
        if (arrivals != null) {
            arrivals.close();
        }
    }
}
