package dev.weft.cuda.exec;

import dev.weft.cuda.kernel.DeviceClock;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.TileTimes;
import dev.weft.op.Timeline;
import java.util.ArrayList;
import java.util.List;

/**
 * What a GPU did in one call: tiles and their waits by the device's clock. One thread at a time.
 */
public final class DeviceTimeline implements AutoCloseable {

    /** The host's own note of a call's end is better than a reading that may be so far off. */
    private static final long CLOSE_NS = 100_000;

    private final int rank;
    private final TileTimes.Owners owners;

    /** Null without a kernel that reads the clock. */
    private final DeviceClock clock;

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
        this.clock = kernel == null ? null : new DeviceClock(kernel.clockReader());
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
        long elapsedNs = events.elapsedNs(call);
        List<TileTimes> tiles = new ArrayList<>();
        products.forEach(product -> product.times().ifPresent(tiles::add));
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
        List<List<Timeline.Span>> workers = new ArrayList<>();
        times.forEach(one -> one.addSpans(owners, workers));
        for (DeviceProduct product : products) {
            if (product.times().isEmpty()) {
                return null;
            }
        }
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

    @Override
    public void close() {
        if (clock != null) {
            clock.close();
        }
    }
}
