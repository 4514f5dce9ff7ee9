package dev.weft.bench.measure;

import dev.weft.report.Samples;
import java.util.LinkedHashMap;

/**
 * Figures of a row, by name with the unit as suffix, in the order in which they were added. Used by
 * one thread.
 */
public final class Figures extends LinkedHashMap<String, Double> {

    private static final long serialVersionUID = 1L;

    /**
     * Adds one.
     *
     * @param value a number, or a boolean: true is 1
     */
    public Figures with(String name, Object value) {
        put(
                name,
                value instanceof Boolean yes ? (yes ? 1.0 : 0.0) : ((Number) value).doubleValue());
        return this;
    }

    /** Adds {@code nameNs} and {@code nameSpreadNs}: the median, and the quartiles' distance. */
    public Figures with(String name, Samples samples) {
        return with(name + "Ns", samples.median() * 1e3)
                .with(name + "SpreadNs", samples.spread() * 1e3);
    }
}
