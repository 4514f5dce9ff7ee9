package dev.weft.plan;

import dev.weft.plan.RankPlan.Storage;
import java.util.List;

/**
 * Proves that the plans of all ranks of a group, run together, gather and finish. It shares no code
 * with {@link Planner}, so it judges any plan. Pure: any thread may call it.
 *
 * <p>What holds for plans that pass:
 *
 * <ol>
 *   <li>All ranks have the same algorithm, storage, chunks and number of lanes; every transfer lies
 *       within the group, its tag is {@link Chunks#tag}, its slot is the source's place in gathered
 *       A or one of the two ping-pong buffers, and it stands in a lane of its initiator.
 *   <li>Every rank gets each remote chunk exactly once, never one of its own; in place, nothing
 *       moves.
 *   <li>Both ends agree: the arrivals of a rank are the lanes of their initiators, reduced to the
 *       transfers that end there, record by record and in order.
 *   <li>Every chunk that is forwarded can be followed back to its owner, and no lane forwards what
 *       the same lane brings later.
 *   <li>No directed link carries more rows than its algorithm's optimum. Ring: to the successor,
 *       all but the receiver's own shard. Bidirectional ring: to either neighbour, every shard for
 *       which that is the strictly shorter way, and of the shard that is equally far both ways
 *       half, plus one span at most; between two ranks, the sender's own shard. Mesh push, mesh
 *       pull, sequential: from anyone to anyone, the sender's own shard. Direct, and every other
 *       link: nothing. On hosts of which some have several ranks, the same holds with hosts in
 *       place of ranks, where every shard takes the link from its {@link Hosts#gateway} on one host
 *       to its gateway on the other, so that a host's rows come to each other host once; and within
 *       a host, from anyone to anyone, the sender's own shard and those that it is the gateway for.
 *   <li>On such hosts a chunk enters each host but its owner's once, and its owner's never; a lane
 *       goes either within a host or between hosts; what a receiver itself gets over the network
 *       comes from the owner; and rows of host mates are consumed before those that cross the
 *       network.
 *   <li>A ping-pong buffer is written only once the shard that it held before is released: the
 *       transfer's credit covers that shard.
 *   <li>Every row of every shard is consumed exactly once, by blocks that name exactly the chunks
 *       that cover them. Own rows come first; every other block is delivered by one lane, and no
 *       block overtakes another that its lane delivers earlier. Sequential consumes all rows in
 *       natural order instead.
 *   <li>Everything finishes: the plans are run symbolically, every lane and every rank's
 *       consumption as one worker that takes its items strictly in order. A transfer needs its
 *       chunk at the sender and its credit at the receiver, a block needs its chunks, and a
 *       ping-pong buffer is released once its shard is both consumed and forwarded. Needs only ever
 *       become true, so what finishes in one order finishes in every order.
 * </ol>
 */
public final class PlanChecker {

    private PlanChecker() {}

    /**
     * Checks the plans of all ranks of a group, in rank order. Takes time and memory in proportion
     * to the chunks that all ranks together receive.
     *
     * @throws PlanException if a property does not hold
     */
    public static void check(List<RankPlan> plans) {
        check(plans, Hosts.one(Math.max(1, plans.size())));
    }

    /**
     * The same for ranks on several hosts. Where some of them share memory and others do not, rings
     * and meshes are held to what is said of hosts; ping-pong rings and sequential plans go over
     * all ranks one by one.
     *
     * @throws PlanException if a property does not hold
     */
    public static void check(List<RankPlan> plans, Hosts hosts) {
        checkAgreement(plans, hosts);
        TransferIndex index = TransferIndex.of(plans);
        EndsCheck.check(plans, index);
        RouteCheck.check(plans, index);
        boolean isHierarchical = isHierarchical(plans.getFirst(), hosts);
        if (isHierarchical) {
            HostCheck.check(plans, hosts);
        }
        Hosts routed = isHierarchical ? hosts : Hosts.apart(plans.size());
        LinkCheck.check(plans, routed);
        if (plans.getFirst().storage() == Storage.PING_PONG) {
            SlotCheck.check(plans);
        }
        ConsumptionCheck.check(plans, routed);
        DryRun.run(plans);
    }

    private static boolean isHierarchical(RankPlan plan, Hosts hosts) {
        return hosts.isHierarchical()
                && plan.storage() == Storage.GATHERED
                && plan.algorithm() != Algorithm.SEQUENTIAL;
    }

    private static void checkAgreement(List<RankPlan> plans, Hosts hosts) {
        if (plans.isEmpty()) {
            throw new IllegalArgumentException("no plans: a group has at least one rank");
        }
        if (hosts.ranks() != plans.size()) {
            throw new IllegalArgumentException(
                    "hosts of "
                            + hosts
                            + " ranks for "
                            + plans.size()
                            + " plans: expected as many");
        }
        RankPlan first = plans.getFirst();
        if (plans.size() != first.ranks()) {
            throw new PlanException(
                    0, "plan for " + first.ranks() + " ranks among " + plans.size() + " plans");
        }
        checkStorage(first);
        if (first.storage() == Storage.IN_PLACE && hosts.count() > 1) {
            throw new PlanException(
                    0, "multiplies in place what lies on " + hosts.count() + " hosts");
        }
        for (int rank = 0; rank < plans.size(); rank++) {
            RankPlan plan = plans.get(rank);
            require(rank, "rank", rank, plan.rank());
            require(rank, "algorithm", first.algorithm(), plan.algorithm());
            require(rank, "storage", first.storage(), plan.storage());
            require(rank, "chunks", first.chunks(), plan.chunks());
            require(rank, "number of lanes", first.lanes().size(), plan.lanes().size());
            for (int lane = 0; lane < plan.lanes().size(); lane++) {
                require(rank, "lane index", lane, plan.lanes().get(lane).index());
            }
        }
    }

    private static void checkStorage(RankPlan plan) {
        boolean fits =
                switch (plan.algorithm()) {
                    case AUTO -> false;
                    case RING -> plan.storage() != Storage.IN_PLACE;
                    case DIRECT -> plan.storage() == Storage.IN_PLACE;
                    case BIDIRECTIONAL_RING, MESH_PUSH, MESH_PULL, SEQUENTIAL ->
                            plan.storage() == Storage.GATHERED;
                };
        if (!fits) {
            throw new PlanException(
                    plan.rank(),
                    "algorithm " + plan.algorithm().label() + " with storage " + plan.storage());
        }
    }

    private static void require(int rank, String what, Object expected, Object actual) {
        if (!expected.equals(actual)) {
            throw new PlanException(rank, what + " is " + actual + ", expected " + expected);
        }
    }
}
