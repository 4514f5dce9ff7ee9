package dev.weft.plan;

import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/**
 * Ways to multiply and reduce: rank r has columns of A and rows of B, the r-th part of K, and C is
 * the sum of all ranks' products.
 *
 * <p>Each way sums in one order, whatever arrives first. In {@link Order#WHOLE} a rank goes on
 * where the one before it in K stopped: the bits are those of the product of all of A and B on one
 * rank, for any cut of K. In {@link Order#BY_RANK} each rank sums its own part from zero, and the
 * parts are added in rank order: the bits depend on the cut of K.
 */
public enum Reduction {
    /** Weft chooses among the others of an order. */
    AUTO(Order.WHOLE),
    /** Peers share memory: a rank multiplies its rows over everybody's part of K. */
    DIRECT(Order.WHOLE),
    /** Blocks of rows go from rank to rank in K's order, and each goes on summing. */
    CHAIN(Order.WHOLE),
    /**
     * As {@link #CHAIN}, from host to host. Blocks are dealt to the ranks of a host, and a rank
     * sums its blocks over the parts of K of all ranks that it shares memory with.
     */
    HIERARCHICAL(Order.WHOLE),
    /**
     * Every rank multiplies without waiting, adds its sums of a block to those of the ranks before
     * it and passes them on.
     */
    RING(Order.BY_RANK),
    /** Every rank sends its sums of a chunk to the chunk's owner, who adds them. */
    MESH_PUSH(Order.BY_RANK),
    /** As {@link #MESH_PUSH}, once everything is multiplied: no overlap. */
    SEQUENTIAL(Order.BY_RANK);

    /** The slot of sums that the receiver goes on from. */
    public static final int PARTIAL = 0;

    /** The slot of sums over all of K. */
    public static final int WHOLE = 1;

    private final Order order;

    /** In which order elements of C are summed. */
    public enum Order {
        /** As on one rank, over all of K. */
        WHOLE,
        /** Over each rank's K from zero, then over the ranks. */
        BY_RANK,
        /**
         * As {@link #BY_RANK}, but each rank's sums are rounded to bf16 before they are added, so
         * that half the bytes travel. Sums are still added in fp32. What the roundings may lose is
         * 2^-8 of {@code |A| x |B|}, for any number of ranks.
         */
        BY_RANK_BF16;

        /**
         * The order in which plans that sum do so. Sums that ranks have made apart are added by
         * rank; if nobody sends any, both orders are the same or it is the whole's.
         */
        public static Order of(List<RankPlan> plans) {
            return plans.stream()
                            .flatMap(plan -> plan.lanes().stream())
                            .flatMap(lane -> lane.transfers().stream())
                            .anyMatch(transfer -> transfer.slot() >= slotOf(0))
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
     * The slot of sums that come from {@code rank} and to which the receiver adds its own: those of
     * that rank alone, or of it and others before it.
     */
    public static int slotOf(int rank) {
        return 2 + rank;
    }

    /** The ranks that have a part of K, in its order; the first where nobody has any. */
    static List<Integer> parts(Shards inner) {
        List<Integer> having =
                IntStream.range(0, inner.ranks()).filter(r -> inner.rows(r) > 0).boxed().toList();
        return having.isEmpty() ? List.of(0) : having;
    }

    public Order order() {
        return order;
    }

    /** Whether it sums in that order. */
    public boolean gives(Order wanted) {
        // A ring would round sums again at every rank.
        return wanted == order
                || wanted == Order.BY_RANK_BF16 && (this == MESH_PUSH || this == SEQUENTIAL);
    }

    public String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** The one named {@code label}; the inverse of {@link #label()}. */
    public static Reduction of(String label) {
        if (label.equals("bidirectional-ring")) {
            throw new IllegalArgumentException(
                    "%s adds sums from two sides, in an order that differs from row to row: expected ring, which adds them in rank order"
                            .formatted(label));
        }
        return Planner.named(label, List.of(values()), Reduction::label);
    }

    /**
     * As a writer of plans, for one cut of K.
     *
     * @param inner how K is spread over the ranks
     * @param all whether every rank gets all rows
     */
    public PlanWriter writer(Shards inner, boolean all) {
        return new Writer(this, inner, all);
    }

    /** Two are equal if they write the same plans. */
    private record Writer(Reduction reduction, Shards inner, boolean all) implements PlanWriter {

        @Override
        public String label() {
            return reduction.label();
        }

        @Override
        public List<RankPlan> plans(Chunks chunks, int lanes, Hosts hosts) {
            return reduction.plans(chunks, inner, all, hosts);
        }
    }

    /** The plans of all ranks on one host. */
    public List<RankPlan> plans(Chunks chunks, Shards inner, boolean all) {
        return plans(chunks, inner, all, Hosts.one(inner.ranks()));
    }

    /**
     * The plans of all ranks, in rank order.
     *
     * @param chunks of C, each one block: who gets which rows, or starts to hand them round
     * @param inner how K is spread over the ranks
     * @param all whether every rank gets all rows
     */
    public List<RankPlan> plans(Chunks chunks, Shards inner, boolean all, Hosts hosts) {
        return new ReductionPlans(this, chunks, inner, all, hosts).plans();
    }
}
