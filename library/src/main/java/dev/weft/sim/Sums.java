package dev.weft.sim;

import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;

/**
 * A product that is summed over ranks: each has the columns of A and the rows of B that are its
 * part of K.
 *
 * @param inner how K is spread over the ranks
 * @param all whether every rank gets all rows of C, or the rows that are its shard
 * @param order in which elements are to be summed, which says what plans there are to choose from
 */
public record Sums(Shards inner, boolean all, Order order) {}
