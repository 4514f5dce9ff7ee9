package dev.weft.cli.compat;

import static dev.weft.report.Text.text;

import dev.weft.op.Timeline;
import dev.weft.report.CallSpans;
import dev.weft.report.RunRecord;
import dev.weft.report.Samples;
import dev.weft.report.ShownRun;
import dev.weft.report.ShownRun.Detail;
import dev.weft.report.ShownRun.Fact;
import dev.weft.report.ShownRun.State;
import dev.weft.report.ShownRun.Verdict;
import dev.weft.report.ShownRun.View;
import java.util.ArrayList;
import java.util.List;

/** What a report shows of the source APIs' commands, which measure fewer views than a run. */
final class SourceReports {

    private SourceReports() {}

    static ShownRun ring(RingRun run, List<RingRun.Report> reports) {
        int ranks = reports.size();
        boolean passed = reports.stream().allMatch(RingRun.Report::passed);
        double relErr = reports.stream().mapToDouble(RingRun.Report::relErr).max().orElse(0);
        long slowestNs = reports.stream().mapToLong(RingRun.Report::elapsedNs).max().orElse(0);
        Samples call = Samples.ofNs(new long[] {slowestNs});
        CallSpans spans =
                spans(reports.stream().map(RingRun.Report::timeline).toList(), 1, run.m());
        double bytesPerRow = (double) run.k() * run.dtype().bytes();
        return new ShownRun(
                "weft ring",
                text(
                        "%d ranks in a ring, [%d x %d] x [%d x %d] each, %s",
                        ranks, run.m(), run.k(), run.k(), run.nLocal(), run.dtype().label()),
                false,
                verdict(passed, text("largest rel_err %.3g, allowed under 0.01", relErr)),
                List.of(time(call), error(relErr)),
                List.of(new Detail("Seed", "" + run.seed())),
                List.of(new View("pipelined", "Ring", call, List.of())),
                spans,
                bytesPerRow,
                2.0 * run.k() * run.nLocal(),
                ShownRun.Analysis.of(spans, bytesPerRow, CallSpans.TrackKind.COMPUTE));
    }

    static ShownRun fgcc(
            FgccRun run, List<FgccRun.Report> reports, Samples samples, double tflops) {
        boolean passed = reports.stream().allMatch(FgccRun.Report::passed);
        double relErr =
                reports.stream()
                        .mapToDouble(report -> report.judgement().deviation().relErr())
                        .max()
                        .orElse(0);
        CallSpans spans =
                spans(
                        reports.stream().map(FgccRun.Report::timeline).toList(),
                        run.groups(),
                        run.m());
        double bytesPerRow = (double) run.k() * run.type().bytes();
        FgccRun.Report first = reports.getFirst();
        return new ShownRun(
                "weft fgcc",
                text(
                        "%d ranks in %d groups, path %s, [%d x %d] x [%d x %d], %s",
                        reports.size(),
                        run.groups(),
                        first.path(),
                        run.m() * run.tpDegree(),
                        run.k(),
                        run.k(),
                        run.n(),
                        run.type().label()),
                false,
                verdict(
                        passed,
                        text(
                                "every product bitwise the unfused one, largest rel_err %.3g",
                                relErr)),
                List.of(
                        time(samples),
                        new Fact(
                                "tflops",
                                "TFLOP/s",
                                tflops,
                                text("%.3g", tflops),
                                "of all ranks together"),
                        error(relErr)),
                List.of(
                        new Detail("lnc", "" + run.config().lnc()),
                        new Detail("Channels", "" + first.channels()),
                        new Detail("Seed", "" + run.seed())),
                List.of(new View("pipelined", "FGCC", samples, List.of())),
                spans,
                bytesPerRow,
                2.0 * run.k() * run.n() / run.tpDegree(),
                ShownRun.Analysis.of(spans, bytesPerRow, CallSpans.TrackKind.COMPUTE));
    }

    /**
     * @param timelines of all ranks
     */
    static ShownRun gather(GatherRun run, GatherRun.Report report, List<Timeline> timelines) {
        CallSpans spans = spans(timelines, run.groups(), run.rows());
        double bytesPerRow = (double) run.cols() * run.dtype().bytes();
        return new ShownRun(
                "weft gather",
                text(
                        "%d ranks in %d groups, %s, [%d x %d] each, %s",
                        report.ranks(),
                        run.groups(),
                        report.algorithm(),
                        run.rows(),
                        run.cols(),
                        run.dtype().label()),
                false,
                verdict(report.exact(), "every byte is exact on every rank"),
                List.of(
                        time(report.gather()),
                        new Fact(
                                "gbPerSecond",
                                "GB/s per rank",
                                report.gatherGbPerSecond(),
                                text("%.2f", report.gatherGbPerSecond()),
                                "bytes from peers by the median time"),
                        new Fact(
                                "ofTheCopy",
                                "Of a plain copy",
                                report.ofTheCopy(),
                                text("%.1f%%", 100 * report.ofTheCopy()),
                                text("which makes %.2f GB/s", report.copyGbPerSecond()))),
                List.of(
                        new Detail("Programs per rank", "" + report.programs()),
                        new Detail("Seed", "" + run.seed())),
                List.of(
                        new View("commOnly", "Gather", report.gather(), List.of()),
                        new View("copy", "Plain copy", report.copy(), List.of())),
                spans,
                bytesPerRow,
                0,
                ShownRun.Analysis.of(spans, bytesPerRow, CallSpans.TrackKind.LANE));
    }

    private static CallSpans spans(List<Timeline> timelines, int groups, long shardRows) {
        int groupSize = timelines.size() / groups;
        List<RunRecord.Rank> ranks = new ArrayList<>();
        for (int rank = 0; rank < timelines.size(); rank++) {
            ranks.add(
                    new RunRecord.Rank(rank, rank / groupSize, shardRows, 0, timelines.get(rank)));
        }
        return CallSpans.of(ranks, timelines.size(), groupSize);
    }

    private static Verdict verdict(boolean passed, String text) {
        return new Verdict(
                passed ? State.PASSED : State.FAILED,
                passed ? text : "wrong on some rank: see what the command printed");
    }

    private static Fact time(Samples samples) {
        return new Fact(
                "time",
                "Time",
                samples.median(),
                text("%.3f ms", samples.median() / 1e3),
                samples.us().size() == 1
                        ? "of the one call, by the slowest rank"
                        : text(
                                "median of %d, spread %.3f ms",
                                samples.us().size(), samples.spread() / 1e3));
    }

    private static Fact error(double relErr) {
        return new Fact(
                "relErr", "Largest rel_err", relErr, text("%.2g", relErr), "against float64");
    }
}
