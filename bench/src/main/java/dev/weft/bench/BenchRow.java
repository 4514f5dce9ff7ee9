package dev.weft.bench;

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
 */
record BenchRow(String item, String name, String peer, double ratio, Map<String, Double> figures) {}
