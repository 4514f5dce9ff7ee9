package dev.weft.bench.measure;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * One comparison.
 *
 * @param item which of the bench's questions it answers, such as {@code product} or {@code fused}
 * @param name what was computed, in words and sizes
 * @param peer what it is compared with
 * @param ratio speed of Weft over that of the peer: above 1 Weft is faster
 * @param figures whatever else was measured in the same run, by name with its unit as suffix
 *     ({@code weftMedianNs}, {@code weftSpreadNs}, {@code peerMedianNs}, ...); in insertion order
 * @param checks all that was verified; none where a wrong product would have ended the bench
 * @param misses what it should reach and does not, in words
 */
public record BenchRow(
        String item,
        String name,
        String peer,
        double ratio,
        Map<String, Double> figures,
        List<Check> checks,
        List<String> misses) {

    /**
     * One verification.
     *
     * @param what was looked at
     * @param detail how close it was, or what is wrong
     */
    public record Check(String what, boolean passed, String detail) {}

    public BenchRow(
            String item, String name, String peer, double ratio, Map<String, Double> figures) {
        this(item, name, peer, ratio, figures, List.of(), List.of());
    }

    public boolean verified() {
        return !checks.isEmpty() && checks.stream().allMatch(Check::passed);
    }

    /** Verified, and reaches all that it should. */
    public boolean pass() {
        return verified() && misses.isEmpty();
    }

    /** All numbers to four places, which is beyond what a GPU's clock measures. */
    public BenchRow rounded() {
        Map<String, Double> rounded = new LinkedHashMap<>(figures);
        rounded.replaceAll((figure, value) -> rounded(value));
        return new BenchRow(item, name, peer, rounded(ratio), rounded, checks, misses);
    }

    private static double rounded(double value) {
        return Math.rint(value * 1e4) / 1e4;
    }
}
