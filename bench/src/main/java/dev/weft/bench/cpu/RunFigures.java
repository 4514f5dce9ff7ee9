package dev.weft.bench.cpu;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import dev.weft.bench.peers.ChildCommand;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The numbers of a run record (docs/run-record.md), by JSON pointer, without samples and timelines.
 * Immutable; any thread may call it.
 */
record RunFigures(Map<String, Double> numbers) {

    /** Long lists of which the bench needs nothing. */
    private static final Set<String> LEFT_OUT = Set.of("samplesUs", "tracks");

    /** A record is shallow; where each number lies is told by a path as long as it is deep. */
    private static final JsonFactory JSON =
            JsonFactory.builder()
                    .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
                    .streamReadConstraints(
                            StreamReadConstraints.builder().maxNestingDepth(16).build())
                    .build();

    RunFigures {
        numbers = Map.copyOf(numbers);
    }

    /**
     * Runs {@code weft run} in a JVM of its own, which verifies its product; one that fails ends
     * the bench.
     *
     * @param folder where inputs and the record go; the next run writes over them, so that two
     *     problems are never on the disk at once
     * @param options separated by blanks
     * @param more options whose values may have blanks
     */
    static RunFigures of(Path folder, Duration limit, String options, String... more)
            throws IOException, InterruptedException {
        Path record = folder.resolve("record.json");
        List<String> arguments = new ArrayList<>(List.of("run", "--quiet"));
        arguments.addAll(List.of(options.split(" ")));
        arguments.addAll(List.of("--json", record.toString()));
        arguments.addAll(List.of("--data-dir", folder.resolve("data").toString()));
        arguments.addAll(List.of(more));
        try {
            ChildCommand.weft(arguments, folder).run(limit);
            return read(record);
        } finally {
            Files.deleteIfExists(record);
        }
    }

    static RunFigures read(Path record) throws IOException {
        Map<String, Double> numbers = new HashMap<>();
        try (JsonParser json = JSON.createParser(record.toFile())) {
            for (JsonToken token = json.nextToken(); token != null; token = json.nextToken()) {
                if (token.isStructStart() && LEFT_OUT.contains(field(json))) {
                    json.skipChildren();
                } else if (token.isNumeric()) {
                    String pointer = json.getParsingContext().pathAsPointer().toString();
                    numbers.put(pointer, json.getDoubleValue());
                }
            }
        } catch (JacksonException e) {
            String why = e.getOriginalMessage().replaceAll("[\\p{Cc}\\u2028\\u2029]", "?");
            throw new IOException(record + ": is not JSON: " + why, e);
        }
        return new RunFigures(numbers);
    }

    /** The name that the value at hand has in its object; empty where it has none. */
    private static String field(JsonParser json) throws IOException {
        String name = json.currentName();
        return name == null ? "" : name;
    }

    /** The median of a view such as {@code pipelined} or {@code sequential/comm}. */
    double medianNs(String view) {
        return number("/views/" + view + "/medianUs") * 1e3;
    }

    /** The mean of a view. */
    double meanNs(String view) {
        return number("/views/" + view + "/meanUs") * 1e3;
    }

    /** The distance between a view's quartiles. */
    double spreadNs(String view) {
        return number("/views/" + view + "/spreadUs") * 1e3;
    }

    /** Cores that the thread took up which moves messages. */
    double progressCpu() {
        return number("/progressCpu");
    }

    /** Rows of a full chunk of the first rank's shard. */
    long chunkRows() {
        return (long) number("/ranks/0/chunkRows");
    }

    private double number(String pointer) {
        Double value = numbers.get(pointer);
        if (value == null) {
            throw new IllegalStateException("the run record has no number at " + pointer);
        }
        return value;
    }
}
