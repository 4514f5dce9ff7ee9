package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Agreement;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.exec.Description;
import dev.weft.plan.PlanChecker;
import dev.weft.plan.Reduction;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.plan.group.Experts;
import dev.weft.plan.step.StepPlan;
import dev.weft.search.Sums;
import dev.weft.tensor.DType;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * Describes an operator that sums products over ranks, on CPUs or GPUs. All ranks describe the same
 * operator; each gives its own rows of B. Used by one thread.
 *
 * @param <M> the type of matrix: in host memory, or on a GPU
 * @param <B> the type of the builder itself
 */
public abstract class ReduceBuilder<M, B extends ReduceBuilder<M, B>> extends MatmulBuilder<M, B> {

    private static final System.Logger LOG = System.getLogger("dev.weft");

    /** Null if this rank is alone and its peers are memory of its host. */
    final Transport fabric;

    final boolean all;
    private final int rank;
    Shards rows;
    Shards kParts;
    ReductionWriter algorithm = Reduction.AUTO;
    Order order;

    /**
     * @param fabric null if this rank is alone and its peers are memory of its host
     * @param all whether every rank gets all rows
     */
    protected ReduceBuilder(Fabric fabric, int rank, boolean all) {
        this.fabric = fabric == null ? null : Transport.of(fabric);
        this.rank = rank;
        this.all = all;
    }

    /**
     * What the ranks have.
     *
     * @param rows which rank gets which rows of C; for an all-reduce, which rank sums which rows if
     *     ranks share memory
     * @param kParts how K is spread over the ranks: rank r has [M, kParts.rows(r)] of A
     * @param dtype the type of A's elements
     */
    public B a(Shards rows, Shards kParts, DType dtype) {
        int ranks = fabric == null ? rows.ranks() : fabric.size();
        for (Shards shards : List.of(rows, kParts)) {
            if (shards.ranks() != ranks) {
                throw new IllegalArgumentException(
                        "shards for %s ranks in a group of %s".formatted(shards.ranks(), ranks));
            }
        }
        if (rank < 0 || rank >= ranks) {
            throw new IllegalArgumentException(
                    "rank %d of shards for %d ranks".formatted(rank, ranks));
        }
        this.rows = rows;
        this.kParts = kParts;
        if (dtype.isScaled()) {
            throw new IllegalArgumentException(
                    "sums over ranks of an A of %s: expected fp32, fp16 or bf16"
                            .formatted(dtype.label()));
        }
        aType(dtype);
        return self();
    }

    /**
     * How sums are combined. {@link Reduction#AUTO}, the default, prices those with the wanted
     * {@link #order} on a model of this machine, tries the best few and keeps the fastest; on GPUs
     * it tries all. A reduction of one's own is proved before the first call.
     */
    public final B algorithm(ReductionWriter reduction) {
        this.algorithm = PlanChecker.guarded(Objects.requireNonNull(reduction, "reduction"));
        return self();
    }

    /**
     * The order in which elements are summed; by default the algorithm's, or that of the whole
     * product.
     */
    public final B order(Order wanted) {
        this.order = wanted;
        return self();
    }

    /** The whole description, checked as far as it is the same on every rank. */
    @SuppressWarnings("exports")
    protected final Description description() {
        check();
        return new Description(
                rows,
                aType(),
                null,
                Math.max(1, summedK().totalRows()),
                outType(),
                columns(),
                algorithm,
                null,
                engine(),
                new Cut(chunkRows(), splitsPerRank(), 0),
                computeWorkers(),
                0,
                Set.of(),
                new Sums(summedK(), all, order));
    }

    /** How K is spread; of experts, over how many a rank's rows sum on average. */
    final Shards summedK() {
        if (ofExperts() == null) {
            return kParts;
        }
        Experts experts = ofExperts().experts();
        long k = ofExperts().side().k() * experts.perRow();
        return Shards.of(
                IntStream.range(0, kParts.ranks())
                        .mapToLong(r -> k * experts.count(r) / experts.count())
                        .toArray());
    }

    final Order wantedOrder() {
        return order == null ? algorithm.order() : order;
    }

    private int worldRank(int of) {
        return fabric == null ? of : fabric.worldRank(of);
    }

    final void check() {
        if (rows == null || sides().isEmpty() && ofExperts() == null) {
            throw new IllegalArgumentException("an operator needs a(...) and at least one b(...)");
        }
        long k = kParts.rows(rank);
        for (int i = 0; ofExperts() == null && i < sides().size(); i++) {
            Side side = sides().get(i);
            if (side.k() != k || side.n() < 1) {
                throw new IllegalArgumentException(
                        "B number %d of rank %d is %s: expected [%d, 1 or more]"
                                .formatted(i, worldRank(rank), side.text(), k));
            }
        }
        if (order != null && algorithm != Reduction.AUTO && !algorithm.gives(order)) {
            throw new IllegalArgumentException(
                    "algorithm %s in order %s: it sums in order %s"
                            .formatted(
                                    algorithm.label(), order.label(), algorithm.order().label()));
        }
    }

    /** Checks that all ranks want the same; a mismatch names two of them. Collective. */
    protected final void agree(Order wanted) {
        if (fabric == null) {
            return;
        }
        Agreement agreement =
                new Agreement(fabric)
                        .on("all-reduce", all ? 1 : 0)
                        .on("A's dtype (0 fp32, 1 fp16, 2 bf16, 3 e4m3, 4 e5m2)", aType().ordinal())
                        .on("the algorithm's number", Agreement.number(algorithm))
                        .on(
                                "the order of sums (0 whole, 1 by rank, 2 by rank in bf16, 3 the algorithm's own)",
                                wanted.ordinal())
                        .on("chunk rows", chunkRows())
                        .on("splits per rank", splitsPerRank());
        int sides = ofExperts() == null ? sides().size() : 0;
        agreement
                .on("the number of Bs", sides)
                .on("which Bs are weights, a bit for each", sides == 0 ? 0 : whichAreWeights());
        epilogueSteps().agree(agreement);
        for (int r = 0; r < fabric.size(); r++) {
            agreement
                    .on("the rows of rank " + fabric.worldRank(r), rows.rows(r))
                    .on("K of rank " + fabric.worldRank(r), kParts.rows(r));
        }
        for (int i = 0; i < sides; i++) {
            agreement
                    .on("the columns of B number " + i, sides().get(i).n())
                    .on("the dtype of B number " + i, sides().get(i).dtype().ordinal());
        }
        agreement.on("the dtype of products", outType().ordinal());
        agreement.settle();
    }

    /**
     * Compares the plans of all ranks, and lets the first prove those that Weft has not written.
     * Collective.
     */
    protected final void agree(
            ReductionWriter writer, List<StepPlan> plans, ReductionRequest request) {
        if (fabric != null) {
            long digest = PlanChecker.digest(writer, request, plans);
            new Agreement(fabric).on("the plan's digest", digest).settle();
        }
        if (rank == 0) {
            PlanChecker.checkGiven(writer, plans, request)
                    .ifPresent(skipped -> LOG.log(System.Logger.Level.WARNING, skipped));
        }
    }

    /** Whether K is cut only at multiples of {@code quantum}. */
    protected final boolean fits(int quantum) {
        return IntStream.range(0, kParts.ranks())
                .filter(r -> kParts.rows(r) > 0)
                .allMatch(r -> kParts.firstRow(r) % quantum == 0);
    }
}
