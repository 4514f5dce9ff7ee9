package dev.weft.cuda.exec;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Things that are done one after the other at one rate, and of which only the last end is known:
 * when each ended. An event behind each would tell, but costs its stream 2 us (H200). Pure.
 */
public final class SteadyRate {

    private static final int STEPS = 60;

    private SteadyRate() {}

    /**
     * The ends, of which the last one is {@code lastNs} unless that is impossible. Each begins when
     * the one before has ended and it is ready.
     *
     * @param fromNs when the first may begin
     * @param readyNs when each may begin
     * @param amounts how much there is to do
     */
    public static long[] ends(long fromNs, long[] readyNs, long[] amounts, long lastNs) {
        return ends(fromNs, List.of(readyNs), List.of(amounts), lastNs).getFirst();
    }

    /** The same for several lines at once, of which the one that ends last is known to. */
    static List<long[]> ends(long fromNs, List<long[]> readyNs, List<long[]> amounts, long lastNs) {
        long most = amounts.stream().mapToLong(line -> Arrays.stream(line).sum()).max().orElse(0);
        double low = 0;
        double high = Math.max(0, lastNs - fromNs) / (double) Math.max(1, most);
        for (int i = 0; i < STEPS; i++) {
            double middle = (low + high) / 2;
            if (latest(fromNs, readyNs, amounts, middle) > lastNs) {
                high = middle;
            } else {
                low = middle;
            }
        }
        List<long[]> all = new ArrayList<>();
        for (int line = 0; line < amounts.size(); line++) {
            double[] ends = ends(fromNs, readyNs.get(line), amounts.get(line), high);
            all.add(Arrays.stream(ends).mapToLong(Math::round).toArray());
        }
        return all;
    }

    private static double latest(
            long fromNs, List<long[]> readyNs, List<long[]> amounts, double nsEach) {
        double latest = 0;
        for (int line = 0; line < amounts.size(); line++) {
            for (double end : ends(fromNs, readyNs.get(line), amounts.get(line), nsEach)) {
                latest = Math.max(latest, end);
            }
        }
        return latest;
    }

    private static double[] ends(long fromNs, long[] readyNs, long[] amounts, double nsEach) {
        double[] ends = new double[amounts.length];
        double at = fromNs;
        for (int i = 0; i < ends.length; i++) {
            at = Math.max(at, readyNs[i]) + nsEach * amounts[i];
            ends[i] = at;
        }
        return ends;
    }
}
