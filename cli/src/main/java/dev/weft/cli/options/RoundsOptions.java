package dev.weft.cli.options;

import picocli.CommandLine.Option;

/** How many rounds are measured, and how many come before. */
public final class RoundsOptions {

    private static final int MOST_ROUNDS = 1_000_000;

    @Option(
            names = "--warmup",
            paramLabel = "N",
            description = "Rounds before measuring (default: ${DEFAULT-VALUE}).")
    int warmup;

    @Option(
            names = "--iterations",
            paramLabel = "N",
            description = "Measured rounds (default: ${DEFAULT-VALUE}).")
    int iterations;

    /** With a command's defaults. */
    public RoundsOptions(int warmup, int iterations) {
        this.warmup = warmup;
        this.iterations = iterations;
    }

    /** Refuses impossible numbers, before anything runs. */
    public void check() {
        warmup();
        iterations();
    }

    public int warmup() {
        return (int) OptionValues.between("--warmup", warmup, 0, MOST_ROUNDS);
    }

    public int iterations() {
        return (int) OptionValues.between("--iterations", iterations, 1, MOST_ROUNDS);
    }
}
