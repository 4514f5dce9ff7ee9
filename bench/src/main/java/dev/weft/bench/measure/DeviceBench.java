package dev.weft.bench.measure;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.TextTarget;
import java.io.IOException;
import java.io.PrintWriter;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** What the benches of all devices take. */
public abstract class DeviceBench implements Callable<Integer> {

    @Spec protected CommandSpec spec;

    @Option(
            names = "--quick",
            description = "Small problems and few rounds: shows that it works, not how fast.")
    protected boolean quick;

    @Option(
            names = "--json",
            paramLabel = "FILE",
            description = "Write the record there; - is standard output (docs/bench-record.md).")
    protected String json;

    /** For people; silent where the record goes to standard output. */
    protected Console console;

    private TextTarget target;
    private String startedAt;

    /** Opens the outputs, once all options are right. */
    protected void open() {
        PrintWriter out = spec.commandLine().getOut();
        target = TextTarget.json(json, out);
        console = new Console(out, target.toStandardOutput());
        startedAt = Instant.now().truncatedTo(ChronoUnit.SECONDS).toString();
    }

    /**
     * Writes the record.
     *
     * @param iterations rounds that counted, where all rows have as many
     */
    protected void write(
            Map<String, Object> machine,
            OptionalInt iterations,
            List<BenchRow> rows,
            List<BenchRecord.Skipped> skipped)
            throws IOException {
        target.writeJson(
                new BenchRecord(machine, quick, iterations, startedAt, rows, skipped)::write);
    }

    /** The items of {@code --only}, or all. */
    protected List<String> checkedItems(List<String> only, List<String> known) {
        if (only == null) {
            return known;
        }
        for (String item : only) {
            if (!known.contains(item)) {
                throw refused(
                        "--only '%s': expected some of %s"
                                .formatted(item, String.join(", ", known)));
            }
        }
        return only;
    }

    /**
     * The numbers of {@code --rows}, or all.
     *
     * @param last of them
     * @param first how many of them are all, with {@code --quick}
     */
    protected List<Integer> checkedRows(List<Integer> rows, int last, int first) {
        if (rows == null) {
            return IntStream.rangeClosed(1, quick ? first : last).boxed().toList();
        }
        for (int row : rows) {
            if (row < 1 || row > last) {
                throw refused("--rows " + row + ": expected numbers from 1 to " + last);
            }
        }
        return rows;
    }

    protected ParameterException refused(String message) {
        return new ParameterException(spec.commandLine(), message);
    }
}
