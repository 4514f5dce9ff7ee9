package dev.weft.cli;

import dev.weft.plan.Algorithm;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code weft sweep}: shapes, ranks, algorithms and chunks, priced on a machine model. */
@Command(
        name = "sweep",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        sortOptions = false,
        description =
                "Prices every combination of shapes, ranks, algorithms and chunks on a model of a"
                        + " machine: a table, and a record. Nothing is multiplied.",
        footer = {
            "",
            "Lists are comma separated; 1024..16384 doubles from end to end.",
            "",
            "Examples:",
            "  ./weft sweep -v Ascend910B1 --gm 2048..16384 --gk 4096 --gn 4096 -n 8",
            "  ./weft sweep -v h200-nvlink8 -n 8..64 --algorithm mesh-push,ring --splits 8..128",
            "  ./weft sweep -v my-machine.json --gn 1024,4096 --csv sweep.csv --json sweep.json"
        })
final class SweepCommand implements Callable<Integer> {

    @Spec CommandSpec spec;

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
            names = {"-n", "--n-ranks"},
            paramLabel = "LIST",
            defaultValue = "8",
            description = "Ranks (default: ${DEFAULT-VALUE}).")
    String ranks;

    @Option(
            names = "--algorithm",
            paramLabel = "LIST",
            defaultValue = "all",
            description =
                    "all, or some of ring, bidirectional-ring, mesh-push, mesh-pull, direct,"
                            + " sequential (default: ${DEFAULT-VALUE}).")
    String algorithm;

    @Option(
            names = "--splits",
            paramLabel = "LIST",
            description = "Chunks per shard (default: as many as the machine would take).")
    String splits;

    @Option(
            names = "--rhs",
            paramLabel = "KIND",
            defaultValue = "replicated",
            description =
                    "B on the ranks: replicated or column-sharded (default: ${DEFAULT-VALUE}).")
    String rhs;

    @Option(
            names = "--json",
            paramLabel = "FILE",
            description = "Write the record (schema weft.sweep/1) there; - is standard output.")
    String json;

    @Option(
            names = "--csv",
            paramLabel = "FILE",
            description = "Write the rows as comma separated values; - is standard output.")
    String csv;

    @Override
    public Integer call() throws IOException {
        Sweep sweep = sweep();
        PrintWriter out = spec.commandLine().getOut();
        JsonTarget record = new JsonTarget(json, out);
        TextTarget values = new TextTarget("--csv", csv, out);
        if (record.toStandardOutput() && values.toStandardOutput()) {
            throw new UsageException("--json - and --csv -: expected one of them in a file");
        }
        boolean quiet = common.quiet || record.toStandardOutput() || values.toStandardOutput();
        List<Sweep.Row> rows = sweep.rows(Progress.forTerminal(common.quiet));
        SweepReport report = new SweepReport(sweep, rows);
        report.print(new Console(out, quiet));
        record.write(report::writeJson);
        values.write(report::writeCsv);
        return 0;
    }

    private Sweep sweep() {
        Sweep sweep =
                new Sweep(
                        common.machine(),
                        NumberList.parse("--gm", m, 0, SimOptions.MOST_ROWS),
                        NumberList.parse("--gk", k, 1, SimOptions.MOST_ROWS),
                        NumberList.parse("--gn", n, 0, SimOptions.MOST_ROWS),
                        NumberList.parseInts("--n-ranks", ranks, 1, SimOptions.MOST_RANKS),
                        algorithms(),
                        splits == null
                                ? List.of(0)
                                : NumberList.parseInts("--splits", splits, 1, Integer.MAX_VALUE),
                        common.aType(),
                        common.outType(),
                        SimOptions.columnSharded(rhs));
        if (sweep.combinations() > Sweep.MOST_COMBINATIONS) {
            throw new UsageException(
                    sweep.combinations()
                            + " combinations: expected at most "
                            + Sweep.MOST_COMBINATIONS);
        }
        return sweep;
    }

    private List<Algorithm> algorithms() {
        if (algorithm.equals("all")) {
            return Arrays.stream(Algorithm.values()).filter(one -> one != Algorithm.AUTO).toList();
        }
        Set<Algorithm> some = new LinkedHashSet<>();
        for (String label : algorithm.split(",", -1)) {
            Algorithm one = ExecutionOptions.algorithm(label);
            if (one == Algorithm.AUTO) {
                throw new UsageException(
                        "--algorithm auto: a sweep prices each one, expected all or some of them");
            }
            some.add(one);
        }
        return List.copyOf(some);
    }
}
