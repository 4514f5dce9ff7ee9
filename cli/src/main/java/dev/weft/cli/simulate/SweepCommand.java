package dev.weft.cli.simulate;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.TextTarget;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.data.CommandFiles;
import dev.weft.cli.options.NumberList;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.options.ProblemOptions;
import dev.weft.cli.options.ReportOptions;
import dev.weft.cli.options.RhsOption;
import dev.weft.cli.simulate.Sweep.Row;
import dev.weft.cli.view.LivePage;
import dev.weft.cli.view.LiveProgress;
import dev.weft.cli.view.ReportFiles;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import dev.weft.report.PageData;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft sweep}: shapes, ranks, algorithms and chunks, priced on a machine model. */
@Command(
        name = "sweep",
        description =
                "Prices every combination of shapes, ranks, algorithms and chunks on a model of a"
                        + " machine: a table, and a record. Nothing is multiplied.",
        footer = {
            "",
            "Lists are comma-separated; 1024..16384 doubles from end to end.",
            "",
            "Examples:",
            "  ./weft sweep -v Ascend910B1 --gm 2048..16384 --gk 4096 --gn 4096 -n 8",
            "  ./weft sweep -v h200-nvlink8 -n 8..64 --algorithm mesh-push,ring --splits 8..128",
            "  ./weft sweep -v h200-nvlink8 --op matmul-reduce-scatter --gk 8192..65536",
            "  ./weft sweep -v my-machine.json --gn 1024,4096 --csv sweep.csv --json sweep.json"
        })
public final class SweepCommand extends WeftCommand {

    @Mixin SimOptions common;

    @Option(
            names = "--gm",
            paramLabel = "LIST",
            defaultValue = "2048",
            description = "Rows of A (default: ${DEFAULT-VALUE}).")
    String m;

    @Option(
            names = "--gk",
            paramLabel = "LIST",
            defaultValue = "2048",
            description = "Columns of A and rows of B (default: ${DEFAULT-VALUE}).")
    String k;

    @Option(
            names = "--gn",
            paramLabel = "LIST",
            defaultValue = "1024",
            description = "Columns of B (default: ${DEFAULT-VALUE}).")
    String n;

    @Option(
            names = {"-n", "--ranks", "--n-ranks"},
            paramLabel = "LIST",
            defaultValue = "8",
            description = "Ranks (default: ${DEFAULT-VALUE}).")
    String ranks;

    @Option(
            names = "--algorithm",
            paramLabel = "LIST",
            defaultValue = "all",
            description =
                    "all, or some of ring, bidirectional-ring, mesh-push, mesh-pull,"
                            + " direct, sequential, or of those that sum if products are summed"
                            + " (default: ${DEFAULT-VALUE}).")
    String algorithm;

    @Option(
            names = {"--splits", "--splits-per-rank"},
            paramLabel = "LIST",
            description = "Chunks per shard (default: what suits the machine).")
    String splits;

    @Mixin RhsOption rhs;

    @Option(
            names = "--json",
            paramLabel = "FILE",
            description =
                    "Write the record (schema weft.sweep/1) to this file; - is standard output.")
    String json;

    @Option(
            names = "--csv",
            paramLabel = "FILE",
            description = "Write the rows as comma-separated values; - is standard output.")
    String csv;

    @Mixin ReportOptions reports;

    @Option(
            names = "--watch",
            description =
                    "Serve a live page on loopback meanwhile: progress and the rows so far; the"
                            + " address is printed.")
    boolean watch;

    @Override
    public Integer call() throws IOException {
        Sweep sweep = sweep();
        PrintWriter out = out();
        TextTarget record = TextTarget.json(json, out);
        TextTarget values = new TextTarget("--csv", csv, out);
        if (record.toStandardOutput() && values.toStandardOutput()) {
            throw new UsageException("--json - and --csv -: expected one of them in a file");
        }
        ReportFiles files = new ReportFiles(reports);
        new CommandFiles()
                .readsMachine(common.socVersion)
                .writes("--json", json)
                .writes("--csv", csv)
                .writes(reports)
                .check();
        boolean quiet = common.quiet || record.toStandardOutput() || values.toStandardOutput();
        Console console = new Console(out, quiet);
        SweepReport report = new SweepReport(sweep, rows(sweep, console));
        report.print(console);
        record.writeJson(report::writeJson);
        values.write(report::writeCsv);
        if (reports.report != null) {
            files.page(PageData.sweep(title(sweep), report::writeJson), console);
        }
        if (reports.trace != null) {
            trace(report, files, console);
        }
        return 0;
    }

    private static String title(Sweep sweep) {
        return "Sweep on " + sweep.machine().name();
    }

    private List<Row> rows(Sweep sweep, Console console) {
        Progress terminal = Progress.forTerminal(common.quiet);
        try (LivePage page = LivePage.open(watch, title(sweep), console, err())) {
            if (page == null) {
                return sweep.rows(terminal, soFar -> {});
            }
            List<Row> rows =
                    sweep.rows(
                            new LiveProgress(terminal, page),
                            soFar -> page.show(new SweepReport(sweep, soFar)::writeJson));
            page.ended((String) null);
            return rows;
        }
    }

    /** Traces the sweep's call in which overlap pays most. */
    private void trace(SweepReport report, ReportFiles files, Console console) throws IOException {
        Row row =
                report.rows().stream()
                        .filter(one -> one.price() != null && one.price().speedup() > 0)
                        .max(Comparator.comparingDouble(one -> one.price().speedup()))
                        .orElseThrow(
                                () ->
                                        new UsageException(
                                                "--trace %s: the machine can do none of the"
                                                        + " combinations",
                                                reports.trace));
        Sweep.Shape shape = row.shape();
        String about =
                text(
                        "%s, M %d, K %d, N %d, %d ranks, %s, %d chunks per source (simulated)",
                        report.sweep().machine().name(),
                        shape.m(),
                        shape.k(),
                        shape.n(),
                        shape.ranks(),
                        row.algorithm(),
                        row.price().chunks());
        console.info("The trace is of the largest speedup: " + about);
        double flopsPerRow = 2.0 * shape.k() * shape.cols(report.sweep().columnSharded());
        files.trace(report.sweep().spans(row), flopsPerRow, about, console);
    }

    private Sweep sweep() {
        Sweep sweep =
                new Sweep(
                        common.machine(),
                        NumberList.parse("--gm", m, 0, ProblemOptions.MOST_SIZE),
                        NumberList.parse("--gk", k, 1, ProblemOptions.MOST_SIZE),
                        NumberList.parse("--gn", n, 0, ProblemOptions.MOST_SIZE),
                        NumberList.parseInts("--n-ranks", ranks, 1, OptionValues.MOST_RANKS),
                        algorithms(),
                        splits == null
                                ? List.of(0)
                                : NumberList.parseInts(
                                        "--splits-per-rank", splits, 1, Integer.MAX_VALUE),
                        common.aType(),
                        common.outType(),
                        common.columnSharded(rhs, spec.commandLine().getParseResult()),
                        common.op);
        if (sweep.combinations() > Sweep.MOST_COMBINATIONS) {
            throw new UsageException(
                    "%s combinations: expected at most %s",
                    sweep.combinations(), Sweep.MOST_COMBINATIONS);
        }
        return sweep;
    }

    private List<String> algorithms() {
        if (algorithm.equals("all")) {
            return (common.isSummed()
                            ? Arrays.stream(Reduction.values()).map(Reduction::label)
                            : Arrays.stream(Algorithm.values()).map(Algorithm::label))
                    .filter(label -> !label.equals(Algorithm.AUTO.label()))
                    .toList();
        }
        Set<String> some = new LinkedHashSet<>();
        for (String label : algorithm.split(",", -1)) {
            if (label.equals(Algorithm.AUTO.label())) {
                throw new UsageException(
                        "--algorithm auto: a sweep prices each one, expected all or some of them");
            }
            some.add(OptionValues.writer(common.checkedOp(), label).label());
        }
        return List.copyOf(some);
    }
}
