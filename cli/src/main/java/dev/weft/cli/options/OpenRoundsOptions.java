package dev.weft.cli.options;

import picocli.CommandLine.Option;

/**
 * Like {@link RoundsOptions}, but as many rounds are measured as it takes if no number is given.
 */
public final class OpenRoundsOptions {

    @Option(
            names = "--warmup",
            paramLabel = "N",
            description = "Rounds before measuring (default: ${DEFAULT-VALUE}).")
    int warmup = 5;

    @Option(
            names = "--iterations",
            paramLabel = "N",
            description =
                    "Measured rounds (default: 10, and then more until what overlap saves is known"
                            + " to 1%%, up to 100 rounds and for up to 5 s).")
    Integer iterations;

    int warmup() {
        return new RoundsOptions(warmup, 1).warmup();
    }

    /** 0 for as many as it takes. */
    int iterations() {
        return iterations == null ? 0 : new RoundsOptions(0, iterations).iterations();
    }
}
