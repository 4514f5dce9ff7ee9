package dev.weft.json;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Values of a JSON text: a {@link Fields}, a {@link List}, a {@link String}, a {@link Numeral}, a
 * {@link Boolean}, null, or an element of a {@link JsonObject.LargeArrays}.
 */
final class JsonTree {

    /** The fields of an object, in their order. */
    record Fields(Map<String, Object> values) {}

    /** A number as written, so that whole ones stay whole and messages can show it. */
    record Numeral(String text) {

        double value() {
            return Double.parseDouble(text);
        }

        /** Null if it is not whole, or does not fit 64 bits. */
        Long whole() {
            try {
                return Long.valueOf(text);
            } catch (NumberFormatException e) {
                return null;
            }
        }
    }

    private final String origin;
    private final JsonParser parser;

    /** Null if there are none. */
    private final JsonObject.LargeArrays large;

    JsonTree(String origin, JsonParser parser, JsonObject.LargeArrays large) {
        this.origin = origin;
        this.parser = parser;
        this.large = large;
    }

    /** The object at the parser's current token. */
    Fields fields() throws IOException {
        Map<String, Object> values = new LinkedHashMap<>();
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            String name = parser.currentName();
            parser.nextToken();
            values.put(name, value());
        }
        return new Fields(values);
    }

    private Object value() throws IOException {
        return switch (parser.currentToken()) {
            case START_OBJECT -> fields();
            case START_ARRAY -> array();
            case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> new Numeral(parser.getText());
            case VALUE_TRUE -> true;
            case VALUE_FALSE -> false;
            case VALUE_NULL -> null;
            default -> parser.getText();
        };
    }

    private List<Object> array() throws IOException {
        String path = large == null ? "" : path();
        boolean isLarge = large != null && large.path().matcher(path).find();
        List<Object> elements = new ArrayList<>();
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            Object element = value();
            if (isLarge && element instanceof Fields fields) {
                String at = path + "[" + elements.size() + "]";
                element = large.reader().apply(new JsonObject(origin, at, fields));
            }
            elements.add(element);
        }
        return elements;
    }

    /** The path of the array that begins: {@code ranks[3].tracks}. */
    private String path() {
        String pointer = parser.getParsingContext().pathAsPointer().toString().substring(1);
        return pointer.replaceAll("/([0-9]+)(?=/|$)", "[$1]").replace('/', '.');
    }

    static void write(Fields fields, JsonGenerator json) throws IOException {
        for (Map.Entry<String, Object> field : fields.values().entrySet()) {
            json.writeFieldName(field.getKey());
            write(field.getValue(), json);
        }
    }

    private static void write(Object value, JsonGenerator json) throws IOException {
        switch (value) {
            case null -> json.writeNull();
            case String text -> json.writeString(text);
            case Boolean flag -> json.writeBoolean(flag);
            case Numeral number -> json.writeNumber(number.text());
            case Fields fields -> {
                json.writeStartObject();
                write(fields, json);
                json.writeEndObject();
            }
            case List<?> elements -> {
                json.writeStartArray();
                for (Object element : elements) {
                    write(element, json);
                }
                json.writeEndArray();
            }
            default -> throw new IllegalStateException("no JSON: " + value.getClass());
        }
    }
}
