package dev.weft.cli.compat;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.JsonTarget;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.data.CommandFiles;
import dev.weft.cli.options.CallOptions;
import dev.weft.cli.options.DeadlineOption;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.view.ReportFiles;
import dev.weft.fabric.World;
import dev.weft.report.ShownRun;
import java.io.IOException;
import java.util.List;
import java.util.function.Supplier;
import picocli.CommandLine.Model.CommandSpec;

/**
 * One call of a source system's command: its ranks and where its results go. Files that cannot be
 * written are refused before anything runs.
 */
final class SourceCall {

    private final CommandSpec spec;
    private final CallOptions options;
    private final JsonTarget json;
    private final ReportFiles files;
    final Console console;
    final Progress progress;

    SourceCall(CommandSpec spec, CallOptions options) {
        this.spec = spec;
        this.options = options;
        this.json = new JsonTarget(options.json, spec.commandLine().getOut());
        this.files = new ReportFiles(options.reports);
        new CommandFiles().writes("--json", options.json).writes(options.reports);
        this.console =
                new Console(spec.commandLine().getOut(), options.quiet || json.toStandardOutput());
        this.progress = Progress.forTerminal(options.quiet);
    }

    /**
     * Runs a part on every rank: on threads of this process, or on the rank that this process is.
     *
     * @param ranksOrNull what the user says
     * @return what the ranks of this process gave
     */
    <T> List<T> onRanks(
            boolean joined, Integer ranksOrNull, int otherwise, World.Function<T> part) {
        if (joined) {
            DeadlineOption.refuseJoined(spec);
        }
        try (World world = joined ? World.joined() : threads(ranksOrNull, otherwise)) {
            return world.call(
                    fabric -> {
                        if (ranksOrNull != null && ranksOrNull != fabric.size()) {
                            throw new UsageException(
                                    "--n-ranks %s: %s ranks were launched",
                                    ranksOrNull, fabric.size());
                        }
                        return part.apply(fabric);
                    });
        } finally {
            progress.end();
        }
    }

    private World threads(Integer ranksOrNull, int otherwise) {
        int ranks = OptionValues.ranks(ranksOrNull == null ? otherwise : ranksOrNull);
        return World.threads(ranks, options.deadline.value);
    }

    /**
     * Writes the files that are asked for.
     *
     * @param failures what is wrong, each in one line
     * @return the exit code
     */
    int finish(JsonTarget.Content content, Supplier<ShownRun> shown, List<String> failures)
            throws IOException {
        json.write(content);
        if (options.reports.wanted()) {
            files.write(shown.get(), console);
        }
        return CallOptions.exitCode(spec.commandLine().getErr(), failures);
    }
}
