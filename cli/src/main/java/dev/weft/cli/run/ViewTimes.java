package dev.weft.cli.run;

import dev.weft.op.Timeline;
import java.util.Arrays;

/** Nanoseconds of every measured round of one rank, by view, and what its last call did when. */
final class ViewTimes {

    final long[] computeOnly;
    final long[] commOnly;
    final long[] sequential;
    final long[] sequentialGather;
    final long[] pipelined;

    /** CPU time of the fabric's own thread in each pipelined call. */
    final long[] progressCpu;

    Timeline timeline;

    ViewTimes(int rounds) {
        computeOnly = new long[rounds];
        commOnly = new long[rounds];
        sequential = new long[rounds];
        sequentialGather = new long[rounds];
        pipelined = new long[rounds];
        progressCpu = new long[rounds];
    }

    /** Cores that the fabric's own thread took up; NaN where it has none. */
    double progressCores() {
        double used = Arrays.stream(progressCpu).sum();
        return used == 0 ? Double.NaN : used / Arrays.stream(pipelined).sum();
    }
}
