package dev.weft.cli.run;

import java.util.Arrays;
import java.util.stream.Stream;

/**
 * Nanoseconds of every measured round of one rank, by view.
 *
 * @param baseline in the Ascend example's views, Weft's own sequential one; otherwise empty
 * @param progressCpu CPU time of the fabric's own thread in each pipelined call
 */
public record ViewTimes(
        long[] computeOnly,
        long[] commOnly,
        long[] sequential,
        long[] sequentialGather,
        long[] pipelined,
        long[] baseline,
        long[] progressCpu) {

    public ViewTimes {
        int rounds = computeOnly.length;
        Stream.of(commOnly, sequential, sequentialGather, pipelined, baseline, progressCpu)
                .filter(view -> view.length != rounds && (view != baseline || view.length > 0))
                .forEach(
                        view -> {
                            throw new IllegalArgumentException(
                                    "%s rounds of one view, %s of another"
                                            .formatted(view.length, rounds));
                        });
    }

    /** Times to be filled in, of Weft's own views. */
    public static ViewTimes of(int rounds) {
        return of(rounds, false);
    }

    /**
     * @param ofExample whether the views are the Ascend example's
     */
    static ViewTimes of(int rounds, boolean ofExample) {
        return new ViewTimes(
                new long[rounds],
                new long[rounds],
                new long[rounds],
                new long[rounds],
                new long[rounds],
                new long[ofExample ? rounds : 0],
                new long[rounds]);
    }

    int rounds() {
        return pipelined.length;
    }

    /** A copy of the first rounds. */
    ViewTimes first(int rounds) {
        return new ViewTimes(
                Arrays.copyOf(computeOnly, rounds),
                Arrays.copyOf(commOnly, rounds),
                Arrays.copyOf(sequential, rounds),
                Arrays.copyOf(sequentialGather, rounds),
                Arrays.copyOf(pipelined, rounds),
                Arrays.copyOf(baseline, Math.min(rounds, baseline.length)),
                Arrays.copyOf(progressCpu, rounds));
    }

    /** How many cores the fabric's own thread used; NaN if it has none. */
    double progressCores() {
        double used = Arrays.stream(progressCpu).sum();
        return used == 0 ? Double.NaN : used / Arrays.stream(pipelined).sum();
    }
}
