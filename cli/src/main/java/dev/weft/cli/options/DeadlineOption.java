package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import dev.weft.fabric.World;
import java.time.Duration;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;

/** How long ranks wait for each other without any progress. */
public final class DeadlineOption {

    @Option(
            names = "--deadline",
            paramLabel = "TIME",
            converter = Durations.class,
            description =
                    "Give up after this long without any progress: 30s, 500ms, 2m (default: 30s).")
    public Duration value = World.DEFAULT_DEADLINE;

    /** Joined ranks use the deadline of the command that launched them. */
    public static void refuseJoined(CommandSpec spec) {
        var given = spec.commandLine().getParseResult().matchedOption("--deadline");
        if (given != null) {
            throw new UsageException(
                    "--deadline %s with --launcher joined: expected it before the -- of"
                            + " 'weft launch', for all ranks",
                    given.originalStringValues().getLast());
        }
    }
}
