package dev.weft.examples.service;

import dev.weft.examples.encoder.Weights;
import dev.weft.fabric.World;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * What a service can be told.
 *
 * @param ranks as threads; processes have as many ranks as were launched
 * @param queue the most requests that wait
 * @param batchTokens the most tokens that are encoded together
 * @param longestWait of a request for others, if the ranks are idle
 */
record Settings(int port, int ranks, int queue, int batchTokens, Duration longestWait) {

    /** The longest text has 128 tokens, and a batch has to have room for it. */
    private static final int LEAST_BATCH = 128;

    private static final int MOST_BATCH = 16_384;

    static final List<Option> OPTIONS =
            List.of(
                    new Option("--port", 8080, 0, 65_535, "port of HTTP, 0 for any free one"),
                    new Option("--ranks", 2, 1, Weights.HEADS, "ranks, if they are threads"),
                    new Option("--queue", 1000, 1, 1_000_000, "most requests that wait"),
                    new Option("--batch-tokens", 2048, LEAST_BATCH, MOST_BATCH, "most of a batch"),
                    new Option("--wait-ms", 2, 0, 1000, "longest wait for a fuller batch"));

    /** A whole number that can be given after a name. */
    record Option(String name, long usual, long least, long most, String about) {

        private long value(String text) {
            if (text.matches("\\d{1,9}")) {
                long value = Long.parseLong(text);
                if (value >= least && value <= most) {
                    return value;
                }
            }
            throw new IllegalArgumentException(
                    "%s %s: expected %d to %d".formatted(name, text, least, most));
        }
    }

    /** The values of all options by name. Bad ones get a one-line IllegalArgumentException. */
    static Map<String, Long> parse(List<Option> options, String... args) {
        Map<String, Option> known = new LinkedHashMap<>();
        Map<String, Long> values = new HashMap<>();
        for (Option option : options) {
            known.put(option.name(), option);
            values.put(option.name(), option.usual());
        }
        for (int i = 0; i < args.length; i += 2) {
            Option option = known.get(args[i]);
            if (option == null || i + 1 == args.length) {
                throw new IllegalArgumentException(
                        option == null
                                ? "unknown option %s: expected %s"
                                        .formatted(args[i], String.join(", ", known.keySet()))
                                : args[i] + ": expected a number after it");
            }
            values.put(args[i], option.value(args[i + 1]));
        }
        return values;
    }

    static String usage(List<Option> options) {
        return options.stream()
                .map(o -> "  %-15s %s (%d)".formatted(o.name(), o.about(), o.usual()))
                .collect(Collectors.joining("\n"));
    }

    static Settings of(Map<String, Long> values) {
        return new Settings(
                values.get("--port").intValue(),
                values.get("--ranks").intValue(),
                values.get("--queue").intValue(),
                values.get("--batch-tokens").intValue(),
                Duration.ofMillis(values.get("--wait-ms")));
    }

    /** The ranks that were launched, or else threads. */
    World world() {
        return World.auto(ranks);
    }
}
