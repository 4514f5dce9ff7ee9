package dev.weft.search;

import dev.weft.plan.Reduction.Order;
import dev.weft.plan.Shards;

/**
 * A product that is summed over ranks: each rank has the columns of A and the rows of B of its part
 * of K.
 *
 * @param kParts how K is spread over the ranks
 * @param all whether every rank gets all rows of C, or only the rows of its shard
 * @param order the order in which elements are summed: it decides which plans are candidates, and
 *     the type in which sums travel
 */
public record Sums(Shards kParts, boolean all, Order order) {}
