package dev.weft.cli.options;

import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import picocli.CommandLine.Option;

/** Which algorithm runs: one of Weft's, or of those on the class path. */
public final class AlgorithmOption {

    @Option(
            names = "--algorithm",
            paramLabel = "NAME",
            description =
                    "auto, ring, bidirectional-ring, mesh-push, mesh-pull, direct or sequential"
                            + " (default: ${DEFAULT-VALUE}).")
    String label = Algorithm.AUTO.label();

    public PlanWriter writer() {
        return OptionValues.algorithm(label);
    }
}
