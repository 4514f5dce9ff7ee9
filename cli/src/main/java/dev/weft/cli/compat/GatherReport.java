package dev.weft.cli.compat;

import static dev.weft.report.Text.text;

import dev.weft.report.CallSpans;
import dev.weft.report.ShownRun;
import dev.weft.report.ShownRun.Detail;
import dev.weft.report.ShownRun.Fact;
import dev.weft.report.ShownRun.State;
import dev.weft.report.ShownRun.Verdict;
import dev.weft.report.ShownRun.View;
import java.util.ArrayList;
import java.util.List;

/** What a report shows of a gather, which has fewer views than a run. */
final class GatherReport {

    private GatherReport() {}

    /**
     * @param received bytes that a rank gets from its peers
     */
    static ShownRun of(
            GatherRun run, GatherCommand.Outcome outcome, CallSpans spans, long received) {
        boolean simulated = outcome.copy() == null;
        double bytesPerRow = (double) run.cols() * run.dtype().bytes();
        double rate = GatherCommand.gbPerSecond(received, outcome.gather());
        List<Fact> facts = new ArrayList<>();
        facts.add(
                new Fact(
                        "time",
                        "Time",
                        outcome.gather().median(),
                        text("%.3f ms", outcome.gather().median() / 1e3),
                        simulated
                                ? "predicted"
                                : text(
                                        "median of %d, spread %.3f ms",
                                        outcome.gather().us().size(),
                                        outcome.gather().spread() / 1e3)));
        facts.add(
                new Fact(
                        "gbPerSecond",
                        "GB/s per rank",
                        rate,
                        text("%.2f", rate),
                        "bytes from peers by the median time"));
        List<View> views = new ArrayList<>();
        views.add(new View("commOnly", "Gather", outcome.gather(), List.of()));
        if (!simulated) {
            double copied = GatherCommand.gbPerSecond(received, outcome.copy());
            double share = copied == 0 ? 0 : rate / copied;
            facts.add(
                    new Fact(
                            "ofTheCopy",
                            "Of a plain copy",
                            share,
                            text("%.1f%%", 100 * share),
                            text("which makes %.2f GB/s", copied)));
            views.add(new View("copy", "Plain copy", outcome.copy(), List.of()));
        }
        return new ShownRun(
                "weft gather",
                text(
                        "%d ranks in %d groups, %s, [%d x %d] each, %s",
                        outcome.ranks(),
                        run.groups().count(),
                        outcome.algorithm(),
                        run.rows(),
                        run.cols(),
                        run.dtype().label()),
                simulated,
                verdict(simulated, outcome.exact()),
                facts,
                List.of(
                        new Detail("Programs per rank", "" + outcome.programs()),
                        new Detail("Seed", "" + run.seed())),
                views,
                spans,
                bytesPerRow,
                0,
                ShownRun.Analysis.of(spans, bytesPerRow, CallSpans.TrackKind.LANE));
    }

    private static Verdict verdict(boolean simulated, boolean exact) {
        if (simulated) {
            return new Verdict(
                    State.PREDICTED, "simulated: times are predicted, nothing was moved");
        }
        return exact
                ? new Verdict(State.PASSED, "every byte is exact on every rank")
                : new Verdict(State.FAILED, "wrong on some rank: see what the command printed");
    }
}
