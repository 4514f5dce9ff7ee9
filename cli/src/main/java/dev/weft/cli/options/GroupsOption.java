package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import picocli.CommandLine.Option;

/** How many groups the ranks of a world are. */
public final class GroupsOption {

    @Option(
            names = "--groups",
            paramLabel = "G",
            description =
                    "Replica groups of consecutive ranks, each gathering on its own"
                            + " (default: ${DEFAULT-VALUE}).")
    public int value = 1;

    /** Refuses what does not divide the ranks. */
    public int of(int ranks) {
        if (value < 1 || ranks % value != 0) {
            throw new UsageException(
                    "--groups %s: expected a number that divides the %s ranks", value, ranks);
        }
        return value;
    }
}
