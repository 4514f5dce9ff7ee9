package dev.weft.bench.measure;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** What the benches of all devices take. */
public abstract class DeviceBench implements Callable<Integer> {

    @Spec protected CommandSpec spec;

    @Option(
            names = "--quick",
            description = "Small problems and few rounds: shows that it works, not how fast.")
    protected boolean quick;

    @Option(
            names = "--json",
            paramLabel = "FILE",
            description = "Write the record there; - is standard output (docs/bench-record.md).")
    protected String json;

    /** The items of {@code --only}, or all. */
    protected List<String> checkedItems(List<String> only, List<String> known) {
        if (only == null) {
            return known;
        }
        for (String item : only) {
            if (!known.contains(item)) {
                throw refused(
                        "--only '%s': expected some of %s"
                                .formatted(item, String.join(", ", known)));
            }
        }
        return only;
    }

    protected ParameterException refused(String message) {
        return new ParameterException(spec.commandLine(), message);
    }

    protected static String now() {
        return Instant.now().truncatedTo(ChronoUnit.SECONDS).toString();
    }
}
