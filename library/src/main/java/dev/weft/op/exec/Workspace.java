package dev.weft.op.exec;

import dev.weft.fabric.transport.Transport;
import dev.weft.plan.RankPlan;

/** What the workers of one rank share: the plan, the memory and the state of the call. */
public record Workspace(
        RankPlan plan,
        Transport fabric,
        OperatorMemory memory,
        CallState state,
        Arrivals arrivals,
        Releases releases,
        Summaries summaries) {

    public static Workspace of(
            RankPlan plan, Transport fabric, OperatorMemory memory, boolean summaries) {
        return new Workspace(
                plan,
                fabric,
                memory,
                new CallState(plan.programs()),
                new Arrivals(plan),
                new Releases(plan, fabric, memory),
                new Summaries(plan, summaries));
    }
}
