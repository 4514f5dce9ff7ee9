package dev.weft.plan;

import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Storage;
import java.util.List;

/**
 * Holds the plans that Weft writes to what each algorithm promises beyond {@link PlanChecker}: any
 * plan that gathers passes that one, these are as good as they can be.
 *
 * <ol>
 *   <li>No directed link carries more rows than its algorithm's optimum. Ring: to the successor,
 *       all but the receiver's own shard. Bidirectional ring: to either neighbour, every shard for
 *       which that is the strictly shorter way, and of the shard that is equally far both ways
 *       half, plus one segment at most; between two ranks, the sender's own shard. Mesh push, mesh
 *       pull, sequential: from anyone to anyone, the sender's own shard. Direct, and every other
 *       link: nothing. On hosts of which some have several ranks, the same holds with hosts in
 *       place of ranks, where every shard takes the link from its {@link Hosts#gateway} on one host
 *       to its gateway on the other, so that a host's rows come to each other host once; and within
 *       a host, from anyone to anyone, the sender's own shard and those that it is the gateway for.
 *   <li>On such hosts a chunk enters each host but its owner's once, and its owner's never; a lane
 *       goes either within a host or between hosts; and rows of host mates are consumed before
 *       those that cross the network.
 *   <li>Sequential consumes all rows in natural order, after the gather; the others do not wait.
 * </ol>
 */
final class AlgorithmCheck {

    private AlgorithmCheck() {}

    static void check(Algorithm algorithm, List<RankPlan> plans) {
        check(algorithm, plans, Hosts.one(plans.size()));
    }

    static void check(Algorithm algorithm, List<RankPlan> plans, Hosts hosts) {
        PlanChecker.check(plans, hosts);
        boolean isHierarchical =
                hosts.isHierarchical()
                        && plans.getFirst().storage() == Storage.GATHERED
                        && algorithm != Algorithm.SEQUENTIAL;
        if (isHierarchical) {
            HostCheck.check(plans, hosts);
        }
        Hosts routed = isHierarchical ? hosts : Hosts.apart(plans.size());
        LinkCheck.check(algorithm, plans, routed);
        for (RankPlan plan : plans) {
            checkConsumption(algorithm, plan, routed);
        }
    }

    private static void checkConsumption(Algorithm algorithm, RankPlan plan, Hosts hosts) {
        boolean sequential = algorithm == Algorithm.SEQUENTIAL;
        if (sequential != plan.pacing().gatherFirst()) {
            throw new PlanException(plan.rank(), algorithm + " with " + plan.pacing());
        }
        if (sequential && !plan.consumption().equals(ConsumptionOrder.natural(plan.chunks()))) {
            throw new PlanException(plan.rank(), "consumes out of natural order");
        }
        boolean crossed = false;
        for (RowBlock block : sequential ? List.<RowBlock>of() : plan.consumption()) {
            boolean near = hosts.shareMemory(plan.rank(), block.source());
            if (near && crossed) {
                throw new PlanException(
                        plan.rank(),
                        block,
                        "block of %d rows from row %d on is a host mate's and comes after rows of other hosts"
                                .formatted(block.rows(), block.firstRow()));
            }
            crossed = !near;
        }
    }
}
