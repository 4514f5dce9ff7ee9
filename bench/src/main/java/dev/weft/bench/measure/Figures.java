package dev.weft.bench.measure;

import java.util.LinkedHashMap;
import java.util.Map;

/** Figures of a row, by name with the unit as suffix. Any thread may call it. */
public final class Figures {

    private Figures() {}

    /**
     * Figures in the order in which they are given.
     *
     * @param namesAndValues a name, its value and so on; of a boolean, true is 1
     */
    public static Map<String, Double> of(Object... namesAndValues) {
        Map<String, Double> figures = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            Object value = namesAndValues[i + 1];
            double number =
                    value instanceof Boolean yes ? (yes ? 1 : 0) : ((Number) value).doubleValue();
            figures.put((String) namesAndValues[i], number);
        }
        return figures;
    }
}
