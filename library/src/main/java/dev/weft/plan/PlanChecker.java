package dev.weft.plan;

import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.step.StepChecker;
import dev.weft.plan.step.StepPlan;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Proves that the plans of all ranks of a group, run together, gather and finish. It shares no code
 * with {@link Algorithm} and can check any plan. Pure and thread-safe.
 *
 * <p>Plans that pass have these properties:
 *
 * <ol>
 *   <li>All ranks have the same name, storage, chunks, pace and number of lanes; every transfer
 *       stays within the group, its tag is {@link Chunks#tag}, its slot is the source's place in
 *       gathered A or one of the two ping-pong buffers, and it is in a lane of its initiator.
 *   <li>Every rank gets each remote chunk exactly once, never one of its own; in place, nothing
 *       moves.
 *   <li>Both ends agree: the arrivals of a rank are the lanes of their initiators, reduced to the
 *       transfers that end there, record by record and in order.
 *   <li>Every forwarded chunk can be traced back to its owner, and no lane forwards what the same
 *       lane brings later.
 *   <li>What a receiver pulls from another host comes from its owner: only a sender there can see
 *       that a chunk to be forwarded has arrived.
 *   <li>A ping-pong buffer is written only once its previous shard is released: the transfer's
 *       credit covers that shard.
 *   <li>Every row of every shard is consumed exactly once, by blocks that name exactly the chunks
 *       that cover them. Unless the gather comes first, own rows come first, and if a lane brings
 *       parts of two blocks, the one it delivers first is consumed first.
 *   <li>Everything finishes: the plans are run symbolically, every lane and every rank's
 *       consumption as one worker that takes its items strictly in order. A transfer needs its
 *       chunk at the sender and its credit at the receiver, a block needs its chunks, and a
 *       ping-pong buffer is released once its shard is both consumed and forwarded. Once a need is
 *       met it stays met, so what finishes in one order finishes in every order.
 * </ol>
 */
public final class PlanChecker {

    /** Proving this many takes about a second, during which other ranks wait. */
    private static final long MOST_DELIVERIES = 2_000_000;

    /** The same for steps of a reduction. */
    private static final long MOST_STEPS = 200_000;

    private PlanChecker() {}

    /**
     * Checks the plans of all ranks of a group, in rank order. Needs time and memory in proportion
     * to the chunks that all ranks receive together.
     *
     * @throws PlanException if a property does not hold
     */
    public static void check(List<RankPlan> plans) {
        check(plans, Hosts.one(Math.max(1, plans.size())));
    }

    /**
     * Checks the plans of ranks on several hosts.
     *
     * @throws PlanException if a property does not hold
     */
    public static void check(List<RankPlan> plans, Hosts hosts) {
        checkAgreement(plans, hosts);
        TransferIndex index = TransferIndex.of(plans);
        EndsCheck.check(plans, index);
        RouteCheck.check(plans, index, hosts);
        if (plans.getFirst().storage() == Storage.PING_PONG) {
            SlotCheck.check(plans);
        }
        ConsumptionCheck.check(plans);
        DryRun.run(plans);
    }

    /**
     * Checks plans that {@link Algorithm} has not written, unless they are too large to be checked
     * before a call.
     *
     * @return what was not checked, and why; empty if all is well
     * @throws PlanException if a property does not hold
     */
    public static Optional<String> checkGiven(List<RankPlan> plans, Hosts hosts) {
        if (plans instanceof WrittenPlans written && written.areFor(hosts)) {
            return Optional.empty();
        }
        checkAgreement(plans, hosts);
        Optional<String> skipped = tooMany(plans);
        if (skipped.isEmpty()) {
            check(plans, hosts);
        }
        return skipped;
    }

    /**
     * The same writer; what a program's own one throws, or returns instead of plans, becomes a
     * {@link PlanException} that names the algorithm.
     */
    public static PlanWriter guarded(PlanWriter writer) {
        return GuardedWriter.of(writer);
    }

    /**
     * The same writer; what a program's own one throws, or returns instead of plans, becomes a
     * {@link PlanException} that names the algorithm.
     */
    public static ReductionWriter guarded(ReductionWriter writer) {
        boolean known = writer instanceof Reduction || writer instanceof GuardedWriter.OfSums;
        return known ? writer : new GuardedWriter.OfSums(writer);
    }

    /**
     * Proves plans that Weft has not written, unless they are too long.
     *
     * @return what was not proved, and why; empty if all is well
     * @throws IllegalArgumentException if they do not compute what is asked for
     */
    public static Optional<String> checkGiven(
            ReductionWriter writer, List<StepPlan> plans, ReductionRequest request) {
        if (writer instanceof Reduction) {
            return Optional.empty();
        }
        long steps =
                plans.stream()
                        .flatMap(plan -> plan.workers().stream())
                        .mapToLong(worker -> worker.steps().size())
                        .sum();
        if (steps > MOST_STEPS) {
            return Optional.of(
                    "the plans of %d ranks were not proved: %d steps, expected at most %d"
                            .formatted(plans.size(), steps, MOST_STEPS));
        }
        try {
            StepChecker.check(plans, request.placement(), request.hosts()::shareMemory);
        } catch (IllegalArgumentException e) {
            throw new PlanException(writer.label(), "%s", e.getMessage());
        }
        return Optional.empty();
    }

    private static Optional<String> tooMany(List<RankPlan> plans) {
        long deliveries = (long) plans.size() * plans.getFirst().chunks().total();
        return deliveries <= MOST_DELIVERIES
                ? Optional.empty()
                : Optional.of(
                        "the plans of %d ranks were not proved: %d deliveries, expected at most %d"
                                .formatted(plans.size(), deliveries, MOST_DELIVERIES));
    }

    private static void checkAgreement(List<RankPlan> plans, Hosts hosts) {
        if (plans.isEmpty()) {
            throw new IllegalArgumentException("no plans: a group has at least one rank");
        }
        if (hosts.ranks() != plans.size()) {
            throw new IllegalArgumentException(
                    "hosts of %s ranks for %s plans: expected as many"
                            .formatted(hosts, plans.size()));
        }
        RankPlan first = plans.getFirst();
        if (plans.size() != first.ranks()) {
            throw new PlanException(
                    0, "plan for " + first.ranks() + " ranks among " + plans.size() + " plans");
        }
        if (first.storage() == Storage.IN_PLACE && hosts.count() > 1) {
            throw new PlanException(
                    0, "multiplies in place what lies on " + hosts.count() + " hosts");
        }
        for (int rank = 0; rank < plans.size(); rank++) {
            RankPlan plan = plans.get(rank);
            require(rank, "rank", rank, plan.rank());
            require(rank, "name", first.name(), plan.name());
            require(rank, "storage", first.storage(), plan.storage());
            require(rank, "chunks", first.chunks(), plan.chunks());
            checkPacing(plan, first.pacing());
            checkReleases(plan);
            require(rank, "number of lanes", first.lanes().size(), plan.lanes().size());
            for (int lane = 0; lane < plan.lanes().size(); lane++) {
                require(rank, "lane index", lane, plan.lanes().get(lane).index());
            }
        }
    }

    /** The ranks' pacing must be the same, except for how each cuts what it gets. */
    private static void checkPacing(RankPlan plan, Pacing first) {
        Pacing pacing = plan.pacing();
        require(plan.rank(), "gathering first", first.gatherFirst(), pacing.gatherFirst());
        require(plan.rank(), "gathering in any way", first.anyGather(), pacing.anyGather());
        require(plan.rank(), "rows of a step", first.stepRows(), pacing.stepRows());
        boolean fits =
                switch (plan.storage()) {
                    case GATHERED -> true;
                    // The last shards wait until the first ones are multiplied.
                    case PING_PONG -> !pacing.gatherFirst();
                    case IN_PLACE -> !pacing.gatherFirst() && pacing.stepRows() == 0;
                    // Their steps are checked, not these plans.
                    case SUMS -> false;
                };
        if (!fits) {
            throw new PlanException(
                    plan.rank(), "storage %s with %s".formatted(plan.storage(), pacing));
        }
    }

    private static void checkReleases(RankPlan plan) {
        List<Integer> others =
                IntStream.range(0, plan.ranks())
                        .filter(r -> plan.storage() == Storage.PING_PONG && r != plan.rank())
                        .boxed()
                        .toList();
        if (!others.equals(plan.releases().stream().sorted().toList())) {
            throw new PlanException(
                    plan.rank(),
                    "releases the shards of ranks %s, expected each of %s once"
                            .formatted(plan.releases(), others));
        }
    }

    private static void require(int rank, String what, Object expected, Object actual) {
        if (!expected.equals(actual)) {
            throw new PlanException(rank, what + " is " + actual + ", expected " + expected);
        }
    }
}
