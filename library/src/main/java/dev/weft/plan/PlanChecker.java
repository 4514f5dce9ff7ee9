package dev.weft.plan;

import dev.weft.plan.step.Placement;
import dev.weft.plan.step.StepChecker;
import dev.weft.plan.step.StepPlan;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * How plans that Weft has not written are guarded, proved and compared. The proof itself is {@link
 * StepChecker}'s. Pure and thread-safe.
 */
public final class PlanChecker {

    /** Proving this many takes about a second, during which other ranks wait. */
    private static final long MOST_STEPS = 200_000;

    private PlanChecker() {}

    /**
     * The same writer; what a program's own one throws, or returns instead of plans, becomes a
     * {@link PlanException} that names the algorithm.
     */
    public static GatherWriter guarded(GatherWriter writer) {
        return isOwn(writer) || writer instanceof GuardedWriter
                ? writer
                : new GuardedWriter.OfGather(writer);
    }

    /** The same for a way to sum. */
    public static ReductionWriter guarded(ReductionWriter writer) {
        return isOwn(writer) || writer instanceof GuardedWriter
                ? writer
                : new GuardedWriter.OfSums(writer);
    }

    /** Whether Weft has written the plans of this writer. */
    static boolean isOwn(PlanWriter writer) {
        return writer instanceof Algorithm.ByPrograms of
                ? isOwn(of.base())
                : !(writer instanceof GuardedWriter)
                        && writer.getClass().getPackage() == PlanChecker.class.getPackage();
    }

    /** Proves plans of a gather that Weft has not written: see the other method. */
    public static Optional<String> checkGiven(
            GatherWriter writer, List<StepPlan> plans, GatherRequest request) {
        return isOwn(writer)
                ? Optional.empty()
                : proved(writer, plans, request.placement(), request.hosts());
    }

    /**
     * Proves plans of a reduction that Weft has not written, unless they are too long.
     *
     * @return what was not proved, and why; empty if all is well
     * @throws PlanException if they do not compute what is asked for
     */
    public static Optional<String> checkGiven(
            ReductionWriter writer, List<StepPlan> plans, ReductionRequest request) {
        return isOwn(writer)
                ? Optional.empty()
                : proved(writer, plans, request.placement(), request.hosts());
    }

    private static Optional<String> proved(
            PlanWriter writer, List<StepPlan> written, Placement placement, Hosts hosts) {
        List<StepPlan> plans = new ArrayList<>();
        long steps = 0;
        for (int rank = 0; rank < written.size(); rank++) {
            plans.add(written.get(rank));
            steps += plans.getLast().workers().stream().mapToLong(w -> w.steps().size()).sum();
            if (steps > MOST_STEPS) {
                return Optional.of(
                        "the plans of %d ranks were not proved: more than %d steps"
                                .formatted(written.size(), MOST_STEPS));
            }
        }
        try {
            StepChecker.check(plans, placement, hosts::shareMemory);
        } catch (IllegalArgumentException e) {
            throw new PlanException(writer.label(), "%s", e.getMessage());
        }
        return Optional.empty();
    }

    /**
     * A number by which ranks compare the plans of all of them. What Weft has written follows from
     * the writer and what it was asked for, so it is not written for that.
     */
    public static long digest(ReductionWriter writer, ReductionRequest of, List<StepPlan> plans) {
        return isOwn(writer)
                ? Objects.hash(writer.toString(), of.chunks(), of.hosts().sizes())
                : StepPlan.digest(plans);
    }

    /** The same for a gather. Ranks may have different columns of B, so these do not count. */
    public static long digest(GatherWriter writer, GatherRequest of) {
        return isOwn(writer)
                ? Objects.hash(writer.toString(), of.chunks(), of.lanes(), of.hosts().sizes())
                : StepPlan.digest(writer.plans(of.withoutProduct()));
    }
}
