package dev.weft.cuda.exec;

import java.util.Arrays;

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
        double low = 0;
        double high = Math.max(0, lastNs - fromNs) / (double) Math.max(1, sum(amounts));
        for (int i = 0; i < STEPS; i++) {
            double middle = (low + high) / 2;
            double[] ends = ends(fromNs, readyNs, amounts, middle);
            if (ends.length > 0 && ends[ends.length - 1] > lastNs) {
                high = middle;
            } else {
                low = middle;
            }
        }
        return Arrays.stream(ends(fromNs, readyNs, amounts, high)).mapToLong(Math::round).toArray();
    }

    private static long sum(long[] amounts) {
        return Arrays.stream(amounts).sum();
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
