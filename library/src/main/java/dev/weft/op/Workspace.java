package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.plan.RankPlan;

/** What all workers of one rank work with. */
record Workspace(
        RankPlan plan,
        Fabric fabric,
        OperatorMemory memory,
        CallState state,
        Arrivals arrivals,
        Releases releases,
        Summaries summaries,
        Settings settings) {

    static Workspace of(RankPlan plan, Fabric fabric, OperatorMemory memory, Settings settings) {
        return new Workspace(
                plan,
                fabric,
                memory,
                new CallState(),
                new Arrivals(plan),
                new Releases(plan, fabric, memory),
                new Summaries(plan, settings.summaries()),
                settings);
    }
}
