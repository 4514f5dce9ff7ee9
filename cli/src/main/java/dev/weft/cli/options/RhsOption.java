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
                    "B on the ranks: column-sharded, so that each computes its own columns of C, or"
                            + " replicated, so that each computes all of C (default:"
                            + " column-sharded; replicated for run -r npu, run -r sim -v"
                            + " Ascend910B1 and --data seed19, as in the Ascend example).")
    String kind;

    public RhsOption() {}

    /** A value as if it were given. */
    public RhsOption(boolean columnSharded) {
        this.kind = label(columnSharded);
    }

    public static String label(boolean columnSharded) {
        return columnSharded ? SHARDED : REPLICATED;
    }

    boolean isGiven() {
        return kind != null;
    }

    /** Whether every rank has its own columns. */
    public boolean columnSharded() {
        return kind == null
                || OptionValues.oneOf("--rhs", kind, REPLICATED, SHARDED).equals(SHARDED);
    }
}
