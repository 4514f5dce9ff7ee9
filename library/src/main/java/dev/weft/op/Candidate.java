package dev.weft.op;

import dev.weft.plan.PlanWriter;

/**
 * One of the plans that {@link dev.weft.plan.Algorithm#AUTO} looked at.
 *
 * @param chunksPerSource chunks of the largest shard; 0 where there was nothing to choose
 * @param predictedNs what the simulator says a call takes on this machine; NaN where it was not
 *     asked
 * @param measuredNs what it took when it was tried; NaN where it was not
 * @param chosen whether it is the one that the operator runs
 */
public record Candidate(
        PlanWriter algorithm,
        int chunksPerSource,
        double predictedNs,
        double measuredNs,
        boolean chosen) {

    /** For those who search by themselves, as the command does. */
    @SuppressWarnings("exports")
    public static Candidate of(dev.weft.search.Candidate found) {
        return new Candidate(
                found.algorithm(),
                found.chunksPerSource(),
                found.predictedNs(),
                found.measuredNs(),
                found.chosen());
    }
}
