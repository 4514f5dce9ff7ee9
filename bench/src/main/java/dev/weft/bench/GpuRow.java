package dev.weft.bench;

import dev.weft.report.Samples;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * One row of the GPU bench.
 *
 * @param item which of the bench's questions it answers
 * @param name what was computed, in words and sizes
 * @param peer what {@code ratio} compares with
 * @param ratio speed of Weft over that of the peer
 * @param times by name, in insertion order
 * @param figures whatever else there is to say, by name with its unit as suffix
 * @param checks all that was verified
 * @param misses what it should reach and does not, in words
 */
record GpuRow(
        String item,
        String name,
        String peer,
        double ratio,
        Map<String, Samples> times,
        Map<String, Double> figures,
        List<GpuCheck> checks,
        List<String> misses) {

    /** A row that could not be measured is a row that is wrong; the others go on. */
    static GpuRow attempt(String item, String name, Supplier<GpuRow> measured) {
        try {
            return measured.get();
        } catch (RuntimeException e) {
            return new GpuRow(
                    item,
                    name,
                    "none",
                    Double.NaN,
                    Map.of(),
                    Map.of(),
                    List.of(new GpuCheck("run", false, firstLine(e))),
                    List.of());
        }
    }

    private static String firstLine(RuntimeException failure) {
        String text = failure.getMessage() == null ? failure.toString() : failure.getMessage();
        return text.lines().findFirst().orElse(failure.toString());
    }

    boolean verified() {
        return !checks.isEmpty() && checks.stream().allMatch(GpuCheck::passed);
    }

    /** Verified, and reaches all that it should. */
    boolean pass() {
        return verified() && misses.isEmpty();
    }
}
