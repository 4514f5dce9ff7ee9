package dev.weft.plan;

import java.util.List;

/**
 * How an algorithm assigns segments to lanes. The cost of one rank's view is what passes there.
 * Pure.
 */
interface Routing {

    /** Whether receivers get what comes to them; otherwise senders put it. */
    boolean pulls();

    /** What lane {@code lane} of {@code rank} carries, in order; may be empty. */
    List<Hop> lane(int rank, int lane);

    /** What every lane that reaches {@code rank} brings to it; none is empty. */
    List<Delivery> deliveries(int rank);

    /** The order in which {@code rank} multiplies row blocks, given its {@link #deliveries}. */
    default List<RowBlock> consumption(Chunks chunks, int rank, List<Delivery> deliveries) {
        return ConsumptionOrder.asDelivered(chunks, rank, deliveries);
    }
}
