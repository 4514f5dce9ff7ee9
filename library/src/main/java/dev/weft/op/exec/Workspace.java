package dev.weft.op.exec;

import dev.weft.fabric.transport.Transport;
import dev.weft.plan.RankPlan;

/** What all workers of one rank work with. */
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
                new CallState(),
                new Arrivals(plan),
                new Releases(plan, fabric, memory),
                new Summaries(plan, summaries));
    }
}
