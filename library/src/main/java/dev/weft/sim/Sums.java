package dev.weft.sim;

import dev.weft.plan.Reduction;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;

/**
 * A product that is summed over ranks: each has the columns of A and the rows of B that are its
 * part of K.
 *
 * @param inner how K is spread over the ranks
 * @param all whether every rank gets all rows of C, or the rows that are its shard
 * @param order in which elements are to be summed, which says what plans there are to choose from,
 *     and in which type sums travel
 */
public record Sums(Shards inner, boolean all, Order order) {

    /** Whether sums are rounded before they are sent to be added. */
    boolean areRounded() {
        return order == Order.BY_RANK_BF16;
    }

    /** Bytes of an element that is sent to a slot. */
    int wireBytes(int slot) {
        return areRounded() && slot >= Reduction.slotOf(0) ? DType.BF16.bytes() : Float.BYTES;
    }
}
