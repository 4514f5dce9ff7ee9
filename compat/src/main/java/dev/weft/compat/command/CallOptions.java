package dev.weft.compat.command;

import dev.weft.cli.console.ExitCode;
import dev.weft.cli.options.DeadlineOption;
import dev.weft.cli.options.ReportOptions;
import java.io.PrintWriter;
import java.util.List;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Options that the commands of the source systems share: seed, deadline, and where results go. */
public final class CallOptions {

    @Option(
            names = "--seed",
            paramLabel = "SEED",
            description = "Seed of the normal data (default: ${DEFAULT-VALUE}).")
    public long seed = 19;

    @Mixin public DeadlineOption deadline;

    @Option(
            names = "--json",
            paramLabel = "FILE",
            description = "Write the results as JSON; - is standard output.")
    public String json;

    @Mixin public ReportOptions reports;

    @Option(names = "--ascii", description = "Draw the timeline in plain ASCII.")
    public boolean ascii;

    @Option(names = "--quiet", description = "Print only errors.")
    public boolean quiet;

    /**
     * The exit code; prints a failure in one line, even with {@code --quiet}.
     *
     * @param failures what is wrong, each in one line
     */
    public static int exitCode(PrintWriter err, List<String> failures) {
        if (failures.isEmpty()) {
            return 0;
        }
        int others = failures.size() - 1;
        String more = others == 0 ? "" : "; and " + others + " more";
        return ExitCode.ofWrongResult(" (" + failures.getFirst() + more + ")", err);
    }
}
