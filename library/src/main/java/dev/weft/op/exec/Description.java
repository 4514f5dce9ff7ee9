package dev.weft.op.exec;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Agreement;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherRequest.Option;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Hosts;
import dev.weft.plan.Plan;
import dev.weft.plan.PlanChecker;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.search.Problem;
import dev.weft.search.Sums;
import dev.weft.tensor.DType;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.lang.System.Logger.Level;
import java.util.AbstractList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * What a caller wants from an operator, on CPUs or GPUs. It is the same on all ranks, except for B.
 * Zeros and nulls leave the choice to Weft.
 *
 * @param scaling the scaling of an A of 8 bits, whose rows have scales in front; else null
 * @param k columns of A as it is gathered; bytes if it has scales
 * @param outType the type of the products
 * @param columns N of each product; empty if A is only gathered
 * @param chunks exactly these chunks, instead of a cut; or null
 * @param engine the name of the engine that multiplies
 * @param computeWorkers threads or thread blocks of a rank that multiply
 * @param commWorkers threads or streams of a rank that move chunks
 * @param features further options
 * @param sums for products that are summed over ranks, in which case the shards are rows of C and K
 *     is that of all ranks; otherwise null
 */
public record Description(
        Shards shards,
        DType aType,
        Scaling scaling,
        long k,
        DType outType,
        List<Long> columns,
        PlanWriter algorithm,
        Chunks chunks,
        String engine,
        Cut cut,
        int computeWorkers,
        int commWorkers,
        Set<Feature> features,
        Sums sums) {

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

    /**
     * How many times fewer rows the next plan is for: with chunks that fit its rows, a call that
     * has a quarter of a plan's rows is as fast as one that has all.
     */
    private static final long FEWER = 4;

    public Description {
        Set<Feature> all = EnumSet.noneOf(Feature.class);
        all.addAll(features);
        features = Collections.unmodifiableSet(all);
    }

    /** What the next plan of fewer rows is for on CPUs. */
    public static Shards fewerRows(Shards shards) {
        return fewerRows(shards, FEWER);
    }

    /**
     * @param times how many times fewer rows of each rank
     */
    public static Shards fewerRows(Shards shards, long times) {
        return Shards.of(
                IntStream.range(0, shards.ranks())
                        .mapToLong(rank -> Math.ceilDiv(shards.rows(rank), times))
                        .toArray());
    }

    /** The same for fewer rows, cut anew. */
    public Description with(Shards fewer) {
        return new Description(
                fewer,
                aType,
                scaling,
                k,
                outType,
                columns,
                algorithm,
                null,
                engine,
                cut,
                computeWorkers,
                commWorkers,
                features,
                sums);
    }

    /** How rows are gathered. */
    public GatherWriter gather() {
        return (GatherWriter) algorithm;
    }

    /** How products are summed. */
    public ReductionWriter reduction() {
        return (ReductionWriter) algorithm;
    }

    /** The columns of all products. */
    public long allColumns() {
        return columns.stream().mapToLong(Long::longValue).sum();
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
        agreement.on("being given chunks", chunks == null ? 0 : 1);
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
                sums);
    }

    /** Refuses the caller's chunks if they are for another A. */
    public void checkGiven() {
        if (chunks != null && (!chunks.shards().equals(shards) || chunks.cols() != k)) {
            throw new IllegalArgumentException(
                    "a plan with %s: expected shards of %s rows x %d columns"
                            .formatted(chunks, shards, k));
        }
    }

    /** What a writer is asked for. */
    public GatherRequest request(Chunks cut, int lanes, Hosts hosts, Set<Option> options) {
        return new GatherRequest(cut, lanes, hosts, allColumns(), 1, options);
    }

    /**
     * Checks what the plan checker cannot know: what is wanted beyond the plan.
     *
     * @param keeps whether the plan itself has to keep gathered A for the caller
     */
    public void checkRuns(String name, StepPlan plan, boolean keeps) {
        if (wants(Feature.KEPT) && plan.reusesBuffers()) {
            throw new IllegalArgumentException(
                    "plan %s with ping-pong buffers and gathered A kept: expected a plan that gathers A"
                            .formatted(name));
        }
        boolean beside = wants(Feature.SIDE_BY_SIDE);
        Buffer gathered =
                plan.buffers().size() > GatherRequest.GATHERED
                        ? plan.buffers().get(GatherRequest.GATHERED)
                        : null;
        long rows = beside ? shards.maxRows() : shards.totalRows();
        if (keeps
                && (gathered == null
                        || gathered.kind() != Buffer.Kind.ROWS
                        || gathered.rows() != rows
                        || gathered.cols() != (beside ? k * shards.ranks() : k))) {
            throw new IllegalArgumentException(
                    "plan %s has no buffer number %d of all rows of A: expected one, since gathered A is to be kept"
                            .formatted(name, GatherRequest.GATHERED));
        }
        for (int lane = 0; wants(Feature.SUMMARIES) && lane < plan.workers().size(); lane++) {
            List<Step> steps = plan.workers().get(lane).steps();
            if (steps.stream().anyMatch(s -> s instanceof Step.Copy c && isPut(plan, c))
                    && steps.stream().anyMatch(s -> s instanceof Step.Copy c && isGet(plan, c))) {
                throw new IllegalArgumentException(
                        "lane %d of plan %s both puts and gets: with counters expected one of the two"
                                .formatted(lane, name));
            }
        }
    }

    private static boolean isPut(StepPlan plan, Step.Copy copy) {
        return copy.to().rank() != plan.rank();
    }

    private static boolean isGet(StepPlan plan, Step.Copy copy) {
        return copy.from().rank() != plan.rank();
    }

    /**
     * The plan of all ranks. Compares it with those of the other ranks, if there is a fabric, and
     * lets the first rank prove it if Weft has not written it. Collective.
     */
    public static Plan agreed(GatherWriter writer, GatherRequest request, Fabric fabric) {
        int rank = fabric == null ? 0 : fabric.rank();
        List<StepPlan> plans = writer.plans(request);
        Chunks chunks = writer.cut(request.chunks());
        if (fabric != null) {
            long digest = PlanChecker.digest(writer, request);
            new Agreement(fabric).on("the plan's digest", digest).settle();
        }
        if (rank == 0) {
            PlanChecker.checkGiven(writer, plans, request)
                    .ifPresent(skipped -> LOG.log(Level.WARNING, skipped));
        }
        List<StepPlan> kept = withOwn(plans, rank);
        LOG.log(
                Level.DEBUG,
                "rank {0}: {1}, {2} chunks, {3} lanes",
                rank,
                writer.label(),
                chunks.total(),
                kept.get(rank).lanes());
        return new Plan(writer, chunks, request.lanes(), kept);
    }

    /** The same plans; that of {@code rank}, which is asked for often, is written once. */
    private static List<StepPlan> withOwn(List<StepPlan> plans, int rank) {
        StepPlan own = plans.get(rank);
        return new AbstractList<>() {
            @Override
            public StepPlan get(int other) {
                return other == rank ? own : plans.get(other);
            }

            @Override
            public int size() {
                return plans.size();
            }
        };
    }
}
