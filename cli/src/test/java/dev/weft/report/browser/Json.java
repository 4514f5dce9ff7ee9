package dev.weft.report.browser;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.report.JsonText;
import java.io.IOException;
import java.io.StringWriter;
import java.util.List;
import java.util.Map;

/** JSON as {@link JsonText} reads it, for Chromium and of its pages. */
final class Json {

    private static final JsonFactory FACTORY = new JsonFactory();

    private Json() {}

    static Object parse(String text) {
        return JsonText.parse(text);
    }

    static String write(Map<String, ?> members) throws IOException {
        StringWriter text = new StringWriter();
        try (JsonGenerator generator = FACTORY.createGenerator(text)) {
            write(members, generator);
        }
        return text.toString();
    }

    private static void write(Object value, JsonGenerator generator) throws IOException {
        switch (value) {
            case Map<?, ?> members -> {
                generator.writeStartObject();
                for (Map.Entry<?, ?> member : members.entrySet()) {
                    generator.writeFieldName(member.getKey().toString());
                    write(member.getValue(), generator);
                }
                generator.writeEndObject();
            }
            case List<?> elements -> {
                generator.writeStartArray();
                for (Object element : elements) {
                    write(element, generator);
                }
                generator.writeEndArray();
            }
            case Integer number -> generator.writeNumber(number);
            case Long number -> generator.writeNumber(number);
            case Double number -> generator.writeNumber(number);
            case Boolean bool -> generator.writeBoolean(bool);
            case String text -> generator.writeString(text);
            default -> throw new IllegalArgumentException("not for JSON: " + value.getClass());
        }
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
