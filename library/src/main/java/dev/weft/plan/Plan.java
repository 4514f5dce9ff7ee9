package dev.weft.plan;

import dev.weft.plan.step.StepPlan;
import java.util.List;

/**
 * What an operator does in every call.
 *
 * @param algorithm the writer of the steps
 * @param chunks how rows are cut: those of A, or of C if products are summed
 * @param lanes communication workers that were asked for
 * @param steps what every rank does, in rank order; the list may write each plan on demand
 */
public record Plan(PlanWriter algorithm, Chunks chunks, int lanes, List<StepPlan> steps) {

    /** The algorithm's name. */
    public String name() {
        return algorithm.label();
    }

    /** Whether ranks multiply rows where other ranks have them. */
    public boolean readsPeersRows() {
        return steps.stream().anyMatch(StepPlan::readsPeersRows);
    }
}
