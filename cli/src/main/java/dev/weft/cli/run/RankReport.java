package dev.weft.cli.run;

import dev.weft.cli.message.RankFile;
import dev.weft.op.Operator;
import dev.weft.plan.Plan;
import dev.weft.trace.Timeline;
import java.util.List;
import java.util.Objects;

/**
 * What one rank measured and checked.
 *
 * @param algorithm what auto chose, or what was requested
 * @param device {@code cpu}, or {@code cuda:} and the GPU's name
 * @param gatheredExact whether gathered A equalled the inputs byte for byte
 * @param keptEqual whether the product that came with gathered A equalled the measured one bitwise;
 *     on a GPU, whether that of the sequential operator did
 * @param keptWithinBound whether it kept to the float64 bound; checked only if its bits differ and
 *     the engine allows that; on a GPU, whether every element of the measured one, and of the other
 *     if it differs, was within the bound of plain sums on the device
 * @param candidates a table of what auto considered; empty if the algorithm was requested
 * @param plans what the ranks of the first group did, for {@code --explain}; empty on other ranks
 *     and in gathers
 */
public record RankReport(
        String algorithm,
        String device,
        String engine,
        int computeWorkers,
        int lanes,
        long chunkRows,
        List<RoundTimes> times,
        boolean gatheredExact,
        boolean keptEqual,
        boolean keptWithinBound,
        List<String> candidates,
        List<String> plans,
        Timeline timeline) {

    /** Where a rank's process writes its report. */
    static final RankFile<RankReport> FILE =
            new RankFile<>("WEFT_REPORT", "report", RankReport.class, Integer.MAX_VALUE);

    /** Where it writes what has been measured so far, if there is a viewer. */
    static final RankFile<RankReport> LIVE =
            new RankFile<>("WEFT_LIVE", "live", RankReport.class, Integer.MAX_VALUE);

    public RankReport {
        Objects.requireNonNull(times, "no times");
        Objects.requireNonNull(timeline, "no timeline");
    }

    /** The report of a measured operator, with the verdict on its gathered A and product. */
    public static RankReport of(
            String device,
            Operator<?> fused,
            ViewRounds.Measured measured,
            boolean gatheredExact,
            boolean keptEqual,
            boolean keptWithinBound,
            List<String> plans) {
        Plan plan = fused.plan();
        int rank = fused.rank();
        return new RankReport(
                plan.name(),
                device,
                fused.engine(),
                fused.computeWorkers(),
                plan.steps().get(rank).movers(),
                plan.chunks().chunkRows(rank),
                measured.times(),
                gatheredExact,
                keptEqual,
                keptWithinBound,
                Explanation.table(fused.candidates()),
                plans,
                measured.timeline());
    }
}
