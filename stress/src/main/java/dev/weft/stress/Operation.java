package dev.weft.stress;

import dev.weft.cli.options.ProblemSpec;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Reduction;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** An operator, by its name on the command line, and the algorithms that it has. */
enum Operation {
    GATHER(ProblemSpec.GATHER),
    SCATTER(ProblemSpec.SCATTER),
    ALL(ProblemSpec.ALL);

    private final String label;

    Operation(String label) {
        this.label = label;
    }

    String label() {
        return label;
    }

    static Operation of(String label) {
        return Arrays.stream(values())
                .filter(operation -> operation.label.equals(label))
                .findFirst()
                .orElseThrow(
                        () ->
                                new IllegalArgumentException(
                                        "unknown operator '%s': expected one of %s"
                                                .formatted(
                                                        label,
                                                        Arrays.stream(values())
                                                                .map(Operation::label)
                                                                .collect(
                                                                        Collectors.joining(
                                                                                ", ")))));
    }

    /** Those that can be used there, without auto, which becomes one of the others. */
    List<String> algorithms(boolean sharesMemory) {
        return labels().filter(name -> !name.equals(Algorithm.AUTO.label()))
                .filter(name -> sharesMemory || !name.equals(Algorithm.DIRECT.label()))
                .toList();
    }

    /** Refuses an algorithm of another operator. */
    void check(String algorithm) {
        if (this == GATHER) {
            Algorithm.of(algorithm);
        } else {
            Reduction.of(algorithm);
        }
    }

    private Stream<String> labels() {
        return this == GATHER
                ? Arrays.stream(Algorithm.values()).map(Algorithm::label)
                : Arrays.stream(Reduction.values()).map(Reduction::label);
    }
}
