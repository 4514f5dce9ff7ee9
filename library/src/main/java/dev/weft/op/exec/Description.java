package dev.weft.op.exec;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Agreement;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanChecker;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.search.Problem;
import dev.weft.tensor.DType;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.lang.System.Logger.Level;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What a caller wants from an operator, on CPUs or GPUs. It is the same on all ranks, except for B.
 * Zeros and nulls leave the choice to Weft.
 *
 * @param scaling the scaling of an A of 8 bits, whose rows have scales in front; else null
 * @param k columns of A as it is gathered; bytes if it has scales
 * @param outType the type of the products
 * @param columns N of each product; empty if A is only gathered
 * @param plans the plans of all ranks, instead of an algorithm, a cut and lanes
 * @param engine the name of the engine that multiplies
 * @param computeWorkers threads or thread blocks of a rank that multiply
 * @param commWorkers threads or streams of a rank that move chunks
 * @param features further options
 */
public record Description(
        Shards shards,
        DType aType,
        Scaling scaling,
        long k,
        DType outType,
        List<Long> columns,
        PlanWriter algorithm,
        List<RankPlan> plans,
        String engine,
        Cut cut,
        int computeWorkers,
        int commWorkers,
        Set<Feature> features) {

    private static final System.Logger LOG = System.getLogger("dev.weft");

    /** Options that not every operator has. */
    public enum Feature {
        /** Keeps gathered A for the caller. */
        KEPT("keeping gathered A"),
        /** Shards arrive in two alternating buffers, and gathered A is never stored. */
        PING_PONG("ping-pong buffers"),
        /** Shards are gathered side by side, along the last dimension. */
        SIDE_BY_SIDE("gathering side by side"),
        /** Rows wait for a counter of the lane that brings them before they look at flags. */
        SUMMARIES("waiting for summaries"),
        /** Peers may read products and gathered A. */
        SHARED("sharing results");

        private final String text;

        Feature(String text) {
            this.text = text;
        }
    }

    public Description {
        Set<Feature> all = EnumSet.noneOf(Feature.class);
        all.addAll(features);
        features = Collections.unmodifiableSet(all);
    }

    public boolean wants(Feature feature) {
        return features.contains(feature);
    }

    /** Whether there is nothing to multiply. */
    public boolean gathersOnly() {
        return columns.isEmpty();
    }

    /** Adds what all ranks must have in common, before anything is planned. */
    public void agree(Agreement agreement, Fabric fabric) {
        agreement.on("K", k);
        agreement.on("M", shards.totalRows());
        for (int r = 0; r < shards.ranks(); r++) {
            agreement.on("the rows of rank " + fabric.worldRank(r), shards.rows(r));
        }
        agreement.on("A's dtype (0 fp32, 1 fp16, 2 bf16, 3 e4m3, 4 e5m2)", aType.ordinal());
        agreement.on(
                "A's scales (0 none, 1 tensor, 2 row, 3 block)",
                scaling == null ? 0 : 1 + scaling.ordinal());
        agreement.on("the algorithm's number", Agreement.number(algorithm));
        agreement.on("chunk rows", cut.chunkRows());
        agreement.on("splits per rank", cut.splitsPerRank());
        agreement.on("chunk columns", cut.chunkCols());
        agreement.on("communication workers", commWorkers);
        agreement.on("being given plans", plans == null ? 0 : 1);
        for (Feature feature : Feature.values()) {
            agreement.on(feature.text, wants(feature) ? 1 : 0);
        }
    }

    /**
     * The problem, for the search for a plan.
     *
     * @param keeps whether gathered A is available afterwards
     */
    public Problem problem(boolean keeps, int workers, int lanes, Hosts hosts) {
        return new Problem(
                shards, k, columns, aType, outType, keeps, workers, lanes, cut, hosts, Map.of(),
                null);
    }

    /** Refuses the caller's plans if they are for another A. */
    public void checkGiven() {
        if (plans == null) {
            return;
        }
        if (plans.size() != shards.ranks()) {
            throw new IllegalArgumentException(
                    "plans of %d ranks for shards of %d".formatted(plans.size(), shards.ranks()));
        }
        RankPlan first = plans.getFirst();
        if (!first.chunks().shards().equals(shards) || first.chunks().cols() != k) {
            throw new IllegalArgumentException(
                    "a plan with %s: expected shards of %s rows x %d columns"
                            .formatted(first.chunks(), shards, k));
        }
    }

    /** Checks what the plan checker cannot know: what is wanted beyond the plan. */
    public void checkRuns(RankPlan plan) {
        if (wants(Feature.KEPT) && plan.storage() == RankPlan.Storage.PING_PONG) {
            throw new IllegalArgumentException(
                    "plan %s with ping-pong buffers and gathered A kept: expected a plan that gathers A"
                            .formatted(plan.name()));
        }
        for (Lane lane : wants(Feature.SUMMARIES) ? plan.lanes() : List.<Lane>of()) {
            if (lane.transfers().stream().map(Transfer::initiator).distinct().count() > 1) {
                throw new IllegalArgumentException(
                        "lane %d of plan %s both puts and gets: with counters expected one of the two"
                                .formatted(lane.index(), plan.name()));
            }
        }
    }

    /**
     * Compares plans with those of the other ranks, if there is a fabric, and lets the first rank
     * prove them if Weft has not written them. Collective.
     */
    public static List<RankPlan> agreed(List<RankPlan> plans, Fabric fabric, Hosts hosts) {
        if (fabric != null) {
            new Agreement(fabric).on("the plan's digest", RankPlan.digest(plans)).settle();
        }
        if (fabric == null || fabric.rank() == 0) {
            PlanChecker.checkGiven(plans, hosts)
                    .ifPresent(skipped -> LOG.log(Level.WARNING, skipped));
        }
        RankPlan plan = plans.get(fabric == null ? 0 : fabric.rank());
        LOG.log(
                Level.DEBUG,
                "rank {0}: {1}, {2} chunks, {3} lanes, {4} blocks",
                plan.rank(),
                plan.name(),
                plan.chunks().total(),
                plan.lanes().size(),
                plan.consumption().size());
        return plans;
    }
}
