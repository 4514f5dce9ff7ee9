package dev.weft.plan;

import dev.weft.plan.step.StepPlan;
import java.util.List;
import java.util.ServiceLoader;

/**
 * A way to gather: it writes the plans. {@link Algorithm} has Weft's own; programs can add others,
 * most easily with a {@link PlanBuilder}. The same request gives the same plans on every rank.
 */
public interface GatherWriter extends PlanWriter {

    /**
     * What every rank does, in rank order. The list may write each plan on demand.
     *
     * @throws IllegalArgumentException if the algorithm cannot gather this
     */
    List<StepPlan> plans(GatherRequest request);

    /**
     * The chunks that {@link #plans} uses when a request has {@code given}. Override it only if the
     * algorithm has its own rules for where chunks and blocks end; {@code plans} must then call it
     * itself, since a request has the chunks as given.
     */
    default Chunks cut(Chunks given) {
        return given;
    }

    /**
     * The writer with this name: one of {@link Algorithm}, or one that a jar on the class path
     * provides (see {@link ServiceLoader}).
     *
     * @throws IllegalArgumentException if there is none; the message lists the names
     * @throws PlanException if there is none, and one on the class path cannot be loaded
     */
    static GatherWriter named(String label) {
        return Planner.named(
                label,
                List.of(Algorithm.values()),
                ServiceLoader.load(GatherWriter.class),
                PlanChecker::guarded);
    }
}
