package dev.weft.plan;

import dev.weft.plan.Reduction.Order;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.StepPlanBuilder;
import java.util.List;
import java.util.ServiceLoader;

/**
 * A way to multiply and sum over ranks: it writes the plans. {@link Reduction} has Weft's own;
 * programs can add others, with a {@link StepPlanBuilder}. The same request gives the same plans on
 * every rank.
 *
 * <p>The plans alone say in which order an element is summed. It must not depend on how rows are
 * cut into chunks: the bits of a result would then depend on it, too.
 */
public interface ReductionWriter extends PlanWriter {

    /**
     * What every rank does, in rank order.
     *
     * @throws IllegalArgumentException if the algorithm cannot do this
     */
    List<StepPlan> plans(ReductionRequest request);

    /** The order in which it sums unless another one is requested. */
    default Order order() {
        return Order.OWN;
    }

    /** Whether it can sum in that order. */
    default boolean gives(Order wanted) {
        return wanted == order();
    }

    /**
     * The writer with this name: one of {@link Reduction}, or one that a jar on the class path
     * provides (see {@link ServiceLoader}).
     *
     * @throws IllegalArgumentException if there is none; the message lists the names
     * @throws PlanException if there is none, and one on the class path cannot be loaded
     */
    static ReductionWriter named(String label) {
        Reduction.refuseBidirectional(label);
        return Planner.named(
                label,
                List.of(Reduction.values()),
                ServiceLoader.load(ReductionWriter.class),
                PlanChecker::guarded);
    }
}
