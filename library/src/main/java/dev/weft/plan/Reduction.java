package dev.weft.plan;

import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/**
 * Ways to multiply and reduce: rank r has the r-th part of K, which is columns of A and rows of B,
 * and C is the sum of all ranks' products.
 *
 * <p>Each way sums in a fixed order, whatever arrives first. In {@link Order#WHOLE} a rank
 * continues where the one before it in K stopped: the bits are those of the product of all of A and
 * B on one rank, for any cut of K. In {@link Order#BY_RANK} each rank sums its own part from zero,
 * and the parts are added in rank order: the bits depend on the cut of K.
 */
public enum Reduction implements ReductionWriter {
    /** Weft chooses among the others with the wanted order. */
    AUTO(Order.WHOLE),
    /** Peers share memory: a rank multiplies its rows over all parts of K. */
    DIRECT(Order.WHOLE),
    /** Blocks of rows pass from rank to rank in K's order, and each continues the sums. */
    CHAIN(Order.WHOLE),
    /**
     * Like {@link #CHAIN}, from host to host. Blocks are assigned to the ranks of a host in turn,
     * and a rank sums its blocks over the parts of K of all ranks that it shares memory with.
     */
    HIERARCHICAL(Order.WHOLE),
    /**
     * Every rank multiplies without waiting, adds its sums of a block to those of the ranks before
     * it and passes them on.
     */
    RING(Order.BY_RANK),
    /** Every rank sends its sums of a chunk to the chunk's owner, which adds them. */
    MESH_PUSH(Order.BY_RANK),
    /** Like {@link #MESH_PUSH}, once everything is multiplied: no overlap. */
    SEQUENTIAL(Order.BY_RANK);

    /** The slot of sums that the receiver continues. */
    public static final int PARTIAL = 0;

    /** The slot of sums over all of K. */
    public static final int WHOLE = 1;

    private final Order order;

    /** The order in which elements of C are summed. */
    public enum Order {
        /** As on one rank, over all of K. */
        WHOLE,
        /** Over each rank's K from zero, then over the ranks. */
        BY_RANK,
        /**
         * Like {@link #BY_RANK}, but each rank's sums are rounded to bf16 before they are added, so
         * that half the bytes travel. Sums are still added in fp32. The rounding error is at most
         * 2^-8 of {@code |A| x |B|}, for any number of ranks.
         */
        BY_RANK_BF16,
        /**
         * That of an algorithm of one's own: the same for every call, and as its plans say. The
         * bits depend on the number of ranks and the cut of K.
         */
        OWN;

        /**
         * The order in which these plans of Weft's own sum. Sums that ranks computed separately are
         * added by rank. If there are none, the order is that of the whole product, or both orders
         * are the same.
         */
        public static Order of(List<StepPlan> plans) {
            return plans.stream()
                            .flatMap(plan -> plan.workers().stream())
                            .flatMap(worker -> worker.steps().stream())
                            .anyMatch(s -> s instanceof Step.Add add && add.addends().size() > 1)
                    ? BY_RANK
                    : WHOLE;
        }

        public String label() {
            return name().toLowerCase(Locale.ROOT).replace('_', '-');
        }
    }

    Reduction(Order order) {
        this.order = order;
    }

    /**
     * The slot of sums that arrive from {@code rank} to be added: those of that rank alone, or of
     * it and others before it.
     */
    public static int slotOf(int rank) {
        return 2 + rank;
    }

    /** The slot that a copy of these plans goes to. */
    public static int slotOf(Step.Copy copy) {
        return switch (copy.to().buffer()) {
            case ReduceSteps.SUMS -> PARTIAL;
            case ReduceSteps.WHOLE -> WHOLE;
            default -> slotOf(copy.from().rank());
        };
    }

    /** The ranks that have a part of K, in its order; the first rank if none has any. */
    static List<Integer> parts(Shards kParts) {
        List<Integer> having =
                IntStream.range(0, kParts.ranks()).filter(r -> kParts.rows(r) > 0).boxed().toList();
        return having.isEmpty() ? List.of(0) : having;
    }

    @Override
    public Order order() {
        return order;
    }

    @Override
    public boolean gives(Order wanted) {
        // A ring would round sums again on every rank.
        return wanted == order
                || wanted == Order.BY_RANK_BF16 && (this == MESH_PUSH || this == SEQUENTIAL);
    }

    @Override
    public String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** The reduction named {@code label}; the inverse of {@link #label()}. */
    public static Reduction of(String label) {
        refuseBidirectional(label);
        return Planner.named(label, List.of(values()));
    }

    static void refuseBidirectional(String label) {
        if (label.equals("bidirectional-ring")) {
            throw new IllegalArgumentException(
                    "%s adds sums from two sides, in an order that differs from row to row: expected ring, which adds them in rank order"
                            .formatted(label));
        }
    }

    @Override
    public List<StepPlan> plans(ReductionRequest request) {
        return new ReduceSteps(this, request).plans();
    }

    /**
     * The steps of ranks that read each other's memory, in an order of sums. In {@link
     * Order#WHOLE}, owners multiply their rows over all of K; otherwise every rank multiplies its
     * part of K, and adds the parts of all ranks for the rows that it gets.
     */
    public static List<StepPlan> linkedSteps(ReductionRequest request) {
        return new LinkedReduceSteps(request).plans();
    }
}
