package dev.weft.plan;

import dev.weft.plan.Reduction.Order;
import dev.weft.plan.step.StepChecker;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.StepPlanBuilder;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;

/**
 * A way to multiply and sum over ranks: it writes the plans. {@link Reduction} has Weft's own;
 * programs can add others, with a {@link StepPlanBuilder}. Pure and thread-safe: the same request
 * gives the same plans on every rank.
 *
 * <p>The plans alone say in which order an element is summed. It must not depend on how rows are
 * cut into chunks: the bits of a result would then depend on it, too.
 */
public interface ReductionWriter {

    /** Steps of all ranks that are proved before a call; more would keep the caller waiting. */
    long MOST_PROVED_STEPS = 200_000;

    /** The name on the command line, in plans and in run records. */
    String label();

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

    /** This reduction as a writer of plans, for one cut of K. */
    default PlanWriter writer(Shards kParts, boolean all) {
        return new Reduction.Writer(this, kParts, all);
    }

    /** The reduction of such a writer. */
    static ReductionWriter of(PlanWriter writer) {
        if (writer instanceof Reduction.Writer sums) {
            return sums.reduction();
        }
        throw new IllegalArgumentException(
                "%s gathers rows: expected a reduction".formatted(writer.label()));
    }

    /**
     * The same writer; what a program's own one throws, or returns instead of plans, becomes a
     * {@link PlanException} that names the algorithm.
     */
    static ReductionWriter guarded(ReductionWriter writer) {
        boolean known = writer instanceof Reduction || writer instanceof GuardedWriter.OfSums;
        return known ? writer : new GuardedWriter.OfSums(writer);
    }

    /**
     * Proves plans that Weft has not written, unless they are too long.
     *
     * @return what was not proved, and why; empty if all is well
     * @throws IllegalArgumentException if they do not compute what is asked for
     */
    static Optional<String> check(
            ReductionWriter writer, List<StepPlan> plans, ReductionRequest request) {
        if (writer instanceof Reduction) {
            return Optional.empty();
        }
        long steps =
                plans.stream()
                        .flatMap(plan -> plan.workers().stream())
                        .mapToLong(worker -> worker.steps().size())
                        .sum();
        if (steps > MOST_PROVED_STEPS) {
            return Optional.of(
                    "the plans of %d ranks were not proved: %d steps, expected at most %d"
                            .formatted(plans.size(), steps, MOST_PROVED_STEPS));
        }
        try {
            StepChecker.check(plans, request.placement(), request.hosts()::shareMemory);
        } catch (IllegalArgumentException e) {
            throw new PlanException(writer.label(), "%s", e.getMessage());
        }
        return Optional.empty();
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
                ReductionWriter::guarded,
                ReductionWriter::label);
    }
}
