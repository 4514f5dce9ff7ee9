package dev.weft.cli;

import dev.weft.op.Timeline;
import dev.weft.report.RunRecord;
import dev.weft.report.Verification;
import dev.weft.report.Views;
import java.util.ArrayList;
import java.util.List;

/** Makes a run record out of predicted times. */
final class SimRecords {

    /** Beyond this many ranks a record has the first one's spans only: there would be millions. */
    static final int MOST_RANKS_WITH_SPANS = 64;

    private SimRecords() {}

    static SimTimelines timelines(SimProblem problem, SimCandidate chosen) {
        int ranks = problem.shards().ranks();
        if (ranks > MOST_RANKS_WITH_SPANS) {
            SimTimelines timelines = new SimTimelines(1);
            problem.tellEachClass(chosen, timelines);
            return timelines;
        }
        SimTimelines timelines = new SimTimelines(ranks);
        problem.tellEveryRank(chosen, timelines);
        return timelines;
    }

    /**
     * @param verification null where nothing was multiplied
     * @param timelines null where nobody wants to read them
     */
    static RunRecord of(
            ProblemSpec spec,
            SimProblem problem,
            ExecutionSpec execution,
            SimCandidate chosen,
            Views views,
            Verification verification,
            SimTimelines timelines) {
        return new RunRecord(
                Records.problem(spec),
                execution(problem, execution, chosen),
                views,
                spec.flopsPerRank(),
                verification,
                timelines == null ? List.of() : ranks(problem, chosen, timelines),
                Records.environment());
    }

    private static RunRecord.Execution execution(
            SimProblem problem, ExecutionSpec execution, SimCandidate chosen) {
        String machine = problem.machine().name();
        return new RunRecord.Execution(
                execution.algorithm().label(),
                chosen.algorithm().label(),
                "sim",
                problem.hosts().sizes(),
                "sim:" + machine,
                machine,
                null,
                "simulated",
                problem.computeWorkers(),
                problem.lanesUsed(chosen),
                Double.NaN,
                0,
                1);
    }

    static List<RunRecord.Rank> ranks(
            SimProblem problem, SimCandidate chosen, SimTimelines timelines) {
        List<RunRecord.Rank> ranks = new ArrayList<>();
        for (int rank = 0; rank < timelines.ranks(); rank++) {
            Timeline timeline = timelines.of(rank);
            ranks.add(
                    new RunRecord.Rank(
                            rank,
                            0,
                            problem.shards().rows(rank),
                            chosen.chunks().chunkRows(rank),
                            timeline));
        }
        return ranks;
    }
}
