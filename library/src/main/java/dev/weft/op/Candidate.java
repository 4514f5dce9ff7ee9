package dev.weft.op;

import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;

/**
 * One of the plans that {@link Algorithm#AUTO} looked at.
 *
 * @param chunksPerSource at least so many chunks of a shard, where its rows allow it; 0 where the
 *     caller has said how to cut
 * @param predictedNs what the simulator says a call takes on this machine
 * @param measuredNs what it took when it was tried; NaN where it was not
 * @param chosen whether it is the one that the operator runs
 */
public record Candidate(
        PlanWriter algorithm,
        int chunksPerSource,
        double predictedNs,
        double measuredNs,
        boolean chosen) {

    static Candidate priced(PlanWriter algorithm, int chunksPerSource, double predictedNs) {
        return new Candidate(algorithm, chunksPerSource, predictedNs, Double.NaN, false);
    }

    Candidate measured(double ns, boolean isChosen) {
        return new Candidate(algorithm, chunksPerSource, predictedNs, ns, isChosen);
    }

    Candidate asChosen() {
        return new Candidate(algorithm, chunksPerSource, predictedNs, measuredNs, true);
    }

    /** The same plan, whatever is known of its time. */
    boolean isPlannedAs(Candidate other) {
        return algorithm == other.algorithm && chunksPerSource == other.chunksPerSource;
    }
}
