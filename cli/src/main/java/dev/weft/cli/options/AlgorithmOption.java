package dev.weft.cli.options;

import dev.weft.plan.Algorithm;
import dev.weft.plan.GatherWriter;
import picocli.CommandLine.Option;

/** The algorithm: one of Weft's, or one on the class path. */
public final class AlgorithmOption {

    @Option(
            names = "--algorithm",
            converter = LowerCase.class,
            paramLabel = "NAME",
            description =
                    "auto, ring, bidirectional-ring, mesh-push, mesh-pull, direct or"
                            + " sequential; if products are summed: auto, direct, chain,"
                            + " hierarchical, ring, mesh-push or sequential (default:"
                            + " ${DEFAULT-VALUE}).")
    String label = Algorithm.AUTO.label();

    public GatherWriter writer() {
        return OptionValues.algorithm(label);
    }
}
