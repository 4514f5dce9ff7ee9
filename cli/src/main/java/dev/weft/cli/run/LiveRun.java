package dev.weft.cli.run;

import dev.weft.cli.options.RunRequest;
import dev.weft.cli.view.LivePage;
import dev.weft.plan.Hosts;
import dev.weft.report.RunRecord;
import dev.weft.report.RunView;
import dev.weft.report.ShownRun;
import java.util.List;
import java.util.TreeMap;

/** Shows on a live page what the ranks have measured so far. Thread-safe. */
final class LiveRun implements RoundListener {

    private final LivePage page;
    private final RunRequest request;
    private final TreeMap<Integer, RankReport> reports = new TreeMap<>();
    private final Hosts hosts;
    private final int reporters;

    private LiveRun(LivePage page, RunRequest request, Hosts hosts, int reporters) {
        this.page = page;
        this.request = request;
        this.hosts = hosts;
        this.reporters = reporters;
    }

    /**
     * @param page null if there is none, and then no listener
     * @param reporters how many ranks report their rounds, from the first on
     */
    static LiveRun on(LivePage page, RunRequest request, Hosts hosts, int reporters) {
        return page == null ? null : new LiveRun(page, request, hosts, reporters);
    }

    @Override
    public synchronized void round(int rank, RankReport soFar) {
        reports.put(rank, soFar);
        int rounds = soFar.times().size();
        boolean alike = reports.values().stream().allMatch(one -> one.times().size() == rounds);
        boolean some = reports.keySet().stream().anyMatch(one -> !request.problem().sitsOut(one));
        // Timelines of different calls do not belong in one picture.
        if (reports.size() == reporters && alike && some) {
            List<RankReport> all = List.copyOf(reports.values());
            page.show(() -> shown(all));
        }
    }

    private ShownRun shown(List<RankReport> all) {
        RunRecord record = Records.of(request, hosts, all, null);
        return RunView.underWay(record, "weft run");
    }
}
