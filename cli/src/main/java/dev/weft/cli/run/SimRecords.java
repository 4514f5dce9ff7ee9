package dev.weft.cli.run;

import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.simulate.SimCandidate;
import dev.weft.cli.simulate.SimProblem;
import dev.weft.cli.simulate.SimTimelines;
import dev.weft.report.RunRecord;
import dev.weft.report.Verification;
import dev.weft.report.Views;
import java.util.List;

/** Makes a run record out of predicted times. */
final class SimRecords {

    private SimRecords() {}

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
                timelines == null ? List.of() : timelines.ranks(problem, chosen),
                Records.environment(),
                null);
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
}
