package dev.weft.compat.command;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.OptionValues;
import java.util.OptionalInt;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;

/** How many ranks a command of the source systems has. */
public final class RanksOption {

    private static final String NAME = "--n-ranks";

    @Option(
            names = {"-n", "--ranks", NAME},
            paramLabel = "R",
            description =
                    "Ranks of the world, 1 to 4096 (default: ${DEFAULT-VALUE}, or as many as were"
                            + " launched).")
    int ranks;

    /** With a command's default. */
    public RanksOption(int otherwise) {
        this.ranks = otherwise;
    }

    /**
     * The launcher of ranks decides how many there are; -n may only confirm it.
     *
     * @param launched how many were launched, if they were
     */
    public int of(CommandSpec spec, OptionalInt launched) {
        OptionValues.ranks(ranks);
        if (isGiven(spec) && launched.isPresent() && launched.getAsInt() != ranks) {
            throw new UsageException(
                    "--n-ranks %s: %s ranks were launched, expected the same number, or no -n",
                    ranks, launched.getAsInt());
        }
        return launched.orElse(ranks);
    }

    public boolean isGiven(CommandSpec spec) {
        return spec.commandLine().getParseResult().hasMatchedOption(NAME);
    }
}
