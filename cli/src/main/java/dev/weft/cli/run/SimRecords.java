package dev.weft.cli.run;

import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.simulate.SimTimelines;
import dev.weft.report.RunRecord;
import dev.weft.report.Verification;
import dev.weft.report.Views;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
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
            PlanSearch search,
            ExecutionSpec execution,
            Candidate chosen,
            Views views,
            Verification verification,
            SimTimelines timelines) {
        return new RunRecord(
                Records.problem(spec),
                execution(search, execution, chosen),
                views,
                spec.flopsPerRank(),
                verification,
                timelines == null ? List.of() : timelines.ranks(search, chosen),
                Records.environment(),
                null);
    }

    private static RunRecord.Execution execution(
            PlanSearch search, ExecutionSpec execution, Candidate chosen) {
        String machine = search.machine().name();
        return new RunRecord.Execution(
                execution.algorithm().label(),
                chosen.algorithm().label(),
                "sim",
                search.hosts().sizes(),
                "sim:" + machine,
                machine,
                null,
                "simulated",
                search.computeWorkers(),
                search.lanesUsed(chosen),
                Double.NaN,
                0,
                1);
    }
}
