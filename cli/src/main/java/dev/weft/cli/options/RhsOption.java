package dev.weft.cli.options;

import picocli.CommandLine.Option;

/** Which columns of B a rank has. */
public final class RhsOption {

    private static final String SHARDED = "column-sharded";
    private static final String REPLICATED = "replicated";

    @Option(
            names = "--rhs",
            converter = LowerCase.class,
            paramLabel = "KIND",
            description =
                    "B on the ranks: column-sharded, where they share the work, or replicated,"
                            + " where each multiplies by all of B (default: ${DEFAULT-VALUE}).")
    String kind;

    /** With a command's default. */
    public RhsOption(boolean columnSharded) {
        this.kind = label(columnSharded);
    }

    public static String label(boolean columnSharded) {
        return columnSharded ? SHARDED : REPLICATED;
    }

    /** Whether every rank has columns of its own. */
    public boolean columnSharded() {
        return OptionValues.oneOf("--rhs", kind, REPLICATED, SHARDED).equals(SHARDED);
    }
}
