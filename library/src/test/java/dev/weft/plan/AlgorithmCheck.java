package dev.weft.plan;

import dev.weft.plan.GatherView.Block;
import dev.weft.plan.step.StepChecker;
import dev.weft.plan.step.StepPlan;
import java.util.List;

/**
 * Holds the plans that Weft writes to what each algorithm promises beyond {@link StepChecker}: any
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

    static void check(
            Algorithm algorithm, GatherWriter writer, Chunks given, int lanes, Hosts hosts) {
        GatherRequest request = PlanCases.request(given, lanes, hosts);
        List<StepPlan> steps = List.copyOf(writer.plans(request));
        StepChecker.check(steps, request.placement(), hosts::shareMemory);
        List<GatherView> plans = GatherView.of(steps, writer.cut(given));
        boolean isHierarchical =
                hosts.isHierarchical()
                        && !steps.getFirst().reusesBuffers()
                        && algorithm != Algorithm.SEQUENTIAL;
        if (isHierarchical) {
            HostCheck.check(plans, hosts);
        }
        Hosts routed = isHierarchical ? hosts : Hosts.apart(plans.size());
        LinkCheck.check(algorithm, plans, routed);
        for (GatherView plan : plans) {
            checkConsumption(algorithm, plan, routed);
        }
    }

    private static void checkConsumption(Algorithm algorithm, GatherView plan, Hosts hosts) {
        boolean sequential = algorithm == Algorithm.SEQUENTIAL;
        if (sequential != plan.plan().multipliesLast()) {
            throw fault(plan, sequential ? "multiplies first" : "multiplies last");
        }
        List<Block> blocks = plan.consumption();
        boolean crossed = false;
        for (int i = 0; i < blocks.size(); i++) {
            Block block = blocks.get(i);
            crossed &= i == 0 || blocks.get(i - 1).program() == block.program();
            if (sequential && i > 0 && row(plan, blocks.get(i - 1)) >= row(plan, block)) {
                throw fault(plan, "consumes out of natural order");
            }
            boolean near = hosts.shareMemory(plan.rank(), block.source());
            if (!sequential && near && crossed) {
                throw fault(plan, block + " is a host mate's and comes after rows of other hosts");
            }
            crossed = !near;
        }
    }

    private static long row(GatherView plan, Block block) {
        return plan.chunks().shards().firstRow(block.source()) + block.firstRow();
    }

    private static IllegalArgumentException fault(GatherView plan, String what) {
        return new IllegalArgumentException("rank %d: %s".formatted(plan.rank(), what));
    }
}
