package dev.weft.op.exec;

import dev.weft.fabric.transport.Transport;
import dev.weft.plan.RankPlan;

/**
 * What the workers of one rank share: the plan, the memory and the state of the call.
 *
 * @param columnParts how many pieces a row block is cut into by columns for the workers
 */
public record Workspace(
        RankPlan plan,
        Transport fabric,
        OperatorMemory memory,
        CallState state,
        Arrivals arrivals,
        Releases releases,
        Summaries summaries,
        int columnParts) {

    /** A workspace with whole row blocks. */
    public static Workspace of(
            RankPlan plan, Transport fabric, OperatorMemory memory, boolean summaries) {
        return of(plan, fabric, memory, summaries, 1);
    }

    public static Workspace of(
            RankPlan plan,
            Transport fabric,
            OperatorMemory memory,
            boolean summaries,
            int columnParts) {
        return new Workspace(
                plan,
                fabric,
                memory,
                new CallState(plan.programs()),
                new Arrivals(plan),
                new Releases(plan, fabric, memory, columnParts),
                new Summaries(plan, summaries),
                columnParts);
    }
}
