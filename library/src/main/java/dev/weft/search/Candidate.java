package dev.weft.search;

import dev.weft.plan.PlanWriter;
import dev.weft.plan.cut.Cut;

/**
 * One of the plans to choose from.
 *
 * @param cut how its shards are cut
 * @param chunksPerSource chunks of the largest shard; 0 if there was no choice
 * @param lanes communication workers of a rank; the algorithm may use fewer
 * @param predictedNs the simulator's time of a call; NaN if it was not simulated
 * @param measuredNs the time of a call when it was tried; NaN if it was not
 * @param chosen whether this candidate is run
 */
public record Candidate(
        PlanWriter algorithm,
        Cut cut,
        int chunksPerSource,
        int lanes,
        double predictedNs,
        double measuredNs,
        boolean chosen) {

    /** A candidate that was neither priced nor tried. */
    public static Candidate of(PlanWriter algorithm, Cut cut, int chunksPerSource, int lanes) {
        return new Candidate(algorithm, cut, chunksPerSource, lanes, Double.NaN, Double.NaN, false);
    }

    public Candidate priced(double ns) {
        return new Candidate(algorithm, cut, chunksPerSource, lanes, ns, measuredNs, chosen);
    }

    Candidate measured(double ns) {
        return new Candidate(algorithm, cut, chunksPerSource, lanes, predictedNs, ns, chosen);
    }

    /** A copy that is marked as chosen, or as not chosen. */
    public Candidate asChosen(boolean isChosen) {
        return new Candidate(
                algorithm, cut, chunksPerSource, lanes, predictedNs, measuredNs, isChosen);
    }

    /** Whether both have the same plan, whatever their times. */
    public boolean isPlannedAs(Candidate other) {
        return algorithm.equals(other.algorithm) && cut.equals(other.cut) && lanes == other.lanes;
    }
}
