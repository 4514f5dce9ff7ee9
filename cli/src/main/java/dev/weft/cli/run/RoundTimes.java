package dev.weft.cli.run;

/**
 * Nanoseconds of one measured round of one rank, by view.
 *
 * @param exchange the part of {@code sequential} in which nothing is multiplied
 * @param baseline in the Ascend example's views, Weft's own sequential one; otherwise -1
 * @param progressCpu CPU time of the fabric's own thread in the pipelined call
 */
public record RoundTimes(
        long computeOnly,
        long commOnly,
        long sequential,
        long exchange,
        long pipelined,
        long baseline,
        long progressCpu) {}
