/**
 * Rows in groups, each of which is multiplied by a B of its own: a layer of experts. {@link
 * dev.weft.plan.group.Experts} says how the experts are spread over ranks, {@link
 * dev.weft.plan.group.RowGroups} which rows of a call they get. Programs mostly read these: {@code
 * GroupedAllGatherMatmul.groups()} fills them in.
 *
 * {@snippet :
 * static RowGroups firstExperts() {
 *     Experts experts = Experts.of(Shards.even(64, 4), 6); // 64 experts on 4 ranks, 6 for a row
 *     RowGroups rows = new RowGroups(experts.count(0), experts.capacity(0, 1000));
 *     int[] counts = new int[experts.count(0)];
 *     counts[2] = 1;
 *     rows.begin(Shards.even(1000, 4), counts, 0);
 *     rows.put(0, 999, 0.5f); // the last row goes to the third expert, with weight 0.5
 *     return rows;
 * }
 * }
 *
 * <p>Invariant: plans know nothing of groups. The plan of the product of all rows and all Bs holds
 * for any groups; a step of it multiplies what the call has.
 */
package dev.weft.plan.group;
