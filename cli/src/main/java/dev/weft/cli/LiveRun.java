package dev.weft.cli;

import dev.weft.plan.Hosts;
import dev.weft.report.RunRecord;
import dev.weft.report.RunView;
import dev.weft.report.ShownRun;
import java.util.List;
import java.util.TreeMap;

/**
 * Progress that also feeds a live page: what each rank has measured so far, as it tells. Any thread
 * may tell.
 */
final class LiveRun extends LiveProgress {

    private final LivePage page;
    private final ProblemSpec problem;
    private final ExecutionSpec execution;
    private final TreeMap<Integer, RankReport> reports = new TreeMap<>();
    private final Hosts hosts;
    private final int tellers;

    /**
     * @param tellers ranks that tell their rounds, from the first on
     */
    LiveRun(
            Progress terminal,
            LivePage page,
            ProblemSpec problem,
            ExecutionSpec execution,
            Hosts hosts,
            int tellers) {
        super(terminal, page);
        this.page = page;
        this.problem = problem;
        this.execution = execution;
        this.hosts = hosts;
        this.tellers = tellers;
    }

    @Override
    Progress ofRank(int rank) {
        return rank == 0 ? this : new RoundsOnly(this);
    }

    @Override
    boolean wantsRounds() {
        return true;
    }

    @Override
    synchronized void round(int rank, RankReport soFar) {
        reports.put(rank, soFar);
        int rounds = soFar.pipelinedNs().length;
        boolean alike =
                reports.values().stream().allMatch(one -> one.pipelinedNs().length == rounds);
        // Timelines of different calls do not belong into one picture.
        if (reports.size() == tellers && alike) {
            List<RankReport> all = List.copyOf(reports.values());
            page.show(() -> shown(all));
        }
    }

    private ShownRun shown(List<RankReport> all) {
        RunRecord record = Records.of(problem, execution, hosts, all, null);
        return RunView.underWay(record, "weft run");
    }

    /** Of ranks whose reports have no way to the page, but who take part in telling. */
    static Progress withoutPage(boolean watched) {
        return new Progress(false) {
            @Override
            boolean wantsRounds() {
                return watched;
            }

            @Override
            void round(int rank, RankReport soFar) {
                // The first rank alone is seen.
            }
        };
    }

    /** Ranks other than the first tell only what they measured. */
    private static final class RoundsOnly extends Progress {

        private final LiveRun run;

        RoundsOnly(LiveRun run) {
            super(false);
            this.run = run;
        }

        @Override
        boolean wantsRounds() {
            return true;
        }

        @Override
        void round(int rank, RankReport soFar) {
            run.round(rank, soFar);
        }
    }
}
