package dev.weft.search;

import dev.weft.plan.Algorithm;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherRequest.Option;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.PlanChecker;
import dev.weft.plan.step.StepPlan;
import dev.weft.sim.Machine;
import dev.weft.sim.Wiring.Topology;
import java.util.List;
import java.util.Set;

/** Writes plans the way a machine runs them. */
public final class MachinePlans {

    private MachinePlans() {}

    /**
     * The plans of a gather. A sequential one leaves the gather to the machine's own all-gather,
     * which is a ring if the links form rings, and between hosts. A kernel may also take rows in
     * its own order.
     */
    public static List<StepPlan> of(Machine machine, GatherWriter writer, GatherRequest request) {
        // What Weft has not written is proved as it was written: a machine's own order may differ.
        List<StepPlan> written = writer.plans(request);
        PlanChecker.checkGiven(writer, written, request);
        if (writer == Algorithm.SEQUENTIAL) {
            Topology topology = machine.node().topology();
            boolean goesRound =
                    request.hosts().count() > 1
                            || topology == Topology.RING
                            || topology == Topology.TORUS;
            // Once everything is gathered any order will do; starting from own rows, all ranks'
            // orders are alike.
            return (goesRound ? Algorithm.RING : writer)
                    .plans(request.with(Set.of(Option.GATHER_FIRST, Option.BY_SOURCE)));
        }
        if (machine.consumption() != Machine.Consumption.BY_SOURCE) {
            return written;
        }
        List<StepPlan> plans = writer.plans(request.with(Set.of(Option.BY_SOURCE)));
        if (plans.getFirst().reusesBuffers()) {
            throw new IllegalArgumentException(
                    "a ping-pong ring on %s, which takes the shard first that comes last: expected a plan that gathers A"
                            .formatted(machine.name()));
        }
        return plans;
    }
}
