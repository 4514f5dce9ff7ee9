package dev.weft.report.browser;

import dev.weft.report.JsonText;
import java.util.List;
import java.util.Map;

/** JSON as {@link JsonText} reads it, for Chromium and of its pages. */
final class Json {

    private Json() {}

    static Object parse(String text) {
        return JsonText.parse(text);
    }

    static String write(Map<String, ?> members) {
        return JsonText.write(members);
    }

    /** The value at the end of a path of member names and element numbers; null where none is. */
    static Object at(Object tree, Object... path) {
        Object value = tree;
        for (Object step : path) {
            value =
                    switch (value) {
                        case Map<?, ?> members -> members.get(step);
                        case List<?> elements -> elements.get((Integer) step);
                        case null -> null;
                        default -> null;
                    };
        }
        return value;
    }

    static String text(Object tree, Object... path) {
        return (String) at(tree, path);
    }

    static double number(Object tree, Object... path) {
        return ((Number) at(tree, path)).doubleValue();
    }

    static List<?> list(Object tree, Object... path) {
        return (List<?>) at(tree, path);
    }
}
