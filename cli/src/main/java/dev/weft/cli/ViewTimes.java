package dev.weft.cli;

import dev.weft.op.Timeline;

/** Nanoseconds of every measured round of one rank, by view, and what its last call did when. */
final class ViewTimes {

    final long[] computeOnly;
    final long[] commOnly;
    final long[] sequential;
    final long[] sequentialGather;
    final long[] pipelined;
    Timeline timeline;

    ViewTimes(int rounds) {
        computeOnly = new long[rounds];
        commOnly = new long[rounds];
        sequential = new long[rounds];
        sequentialGather = new long[rounds];
        pipelined = new long[rounds];
    }
}
