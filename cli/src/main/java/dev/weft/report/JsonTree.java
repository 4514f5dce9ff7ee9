package dev.weft.report;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * An object out of a record's JSON. Fields are asked for by name and kind; what is not as expected
 * is an {@link IllegalArgumentException} of one line with the record's name, the field's path and
 * what would be right. Fields that nobody asks for are allowed: a later version may write more.
 */
final class JsonTree {

    private static final JsonFactory JSON =
            JsonFactory.builder()
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
                    .build();

    /** Reads some arrays in a way of its own: there are too many spans to keep them as trees. */
    @FunctionalInterface
    interface ArrayReader {

        /** Reads the array whose first token is the parser's; null leaves it to the tree. */
        Object read(String field, JsonParser parser) throws IOException;
    }

    /** More than anything that is counted or timed; the page's numbers hold it exactly. */
    static final long MOST = 1L << 53;

    /** Longer texts are cut in messages. */
    private static final int EXCERPT_CHARS = 60;

    private final String path;
    private final Map<String, Object> values;

    private JsonTree(String path, Map<String, Object> values) {
        this.path = path;
        this.values = values;
    }

    /**
     * @param name of the record, for messages
     */
    static JsonTree read(String name, InputStream in, ArrayReader arrays) {
        try (JsonParser parser = JSON.createParser(in)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw new IllegalArgumentException(name + ": is not a JSON object { ... }");
            }
            Map<String, Object> values = object(parser, arrays);
            if (parser.nextToken() != null) {
                throw new IllegalArgumentException(name + ": has text behind its JSON object");
            }
            return new JsonTree(name, values);
        } catch (JacksonException e) {
            String where = e.getLocation() == null ? "" : " in line " + e.getLocation().getLineNr();
            throw new IllegalArgumentException(
                    name + ": is not JSON" + where + ": " + excerpt(e.getOriginalMessage()), e);
        } catch (IOException e) {
            throw new IllegalArgumentException(name + ": cannot be read: " + e.getMessage(), e);
        }
    }

    private static Map<String, Object> object(JsonParser parser, ArrayReader arrays)
            throws IOException {
        Map<String, Object> values = new LinkedHashMap<>();
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            String field = parser.currentName();
            parser.nextToken();
            values.put(field, value(field, parser, arrays));
        }
        return values;
    }

    private static Object value(String field, JsonParser parser, ArrayReader arrays)
            throws IOException {
        return switch (parser.currentToken()) {
            case START_OBJECT -> object(parser, arrays);
            case START_ARRAY -> {
                Object own = arrays.read(field, parser);
                yield own == null ? array(field, parser, arrays) : own;
            }
            case VALUE_STRING -> parser.getText();
            case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> number(parser);
            case VALUE_TRUE -> true;
            case VALUE_FALSE -> false;
            default -> null;
        };
    }

    private static Number number(JsonParser parser) throws IOException {
        return parser.getNumberType() == JsonParser.NumberType.INT
                        || parser.getNumberType() == JsonParser.NumberType.LONG
                ? (Number) parser.getLongValue()
                : (Number) parser.getDoubleValue();
    }

    private static List<Object> array(String field, JsonParser parser, ArrayReader arrays)
            throws IOException {
        List<Object> values = new ArrayList<>();
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            values.add(value(field, parser, arrays));
        }
        return values;
    }

    boolean has(String field) {
        return values.get(field) != null;
    }

    String text(String field) {
        return wanted(field, String.class, "a text");
    }

    /** Null where it is null or not there. */
    String textOrNull(String field) {
        return has(field) ? text(field) : null;
    }

    boolean flag(String field) {
        return wanted(field, Boolean.class, "true or false");
    }

    Boolean flagOrNull(String field) {
        return has(field) ? (Boolean) flag(field) : null;
    }

    /** Not negative, and not beyond all measure. */
    double number(String field) {
        return checked(field, wanted(field, Number.class, "a number"));
    }

    /** Also one that is no number, which JSON can only tell as a text. */
    double anyNumber(String field) {
        Object value = values.get(field);
        if ("NaN".equals(value) || "Infinity".equals(value) || "-Infinity".equals(value)) {
            return Double.parseDouble((String) value);
        }
        return wanted(field, Number.class, "a number").doubleValue();
    }

    private double checked(String field, Number number) {
        double value = number.doubleValue();
        if (!(value >= 0 && value <= MOST)) {
            throw wrong(field, "is " + value + ": expected 0 to " + MOST);
        }
        return value;
    }

    /** A seed may be any. */
    long whole(String field) {
        return wanted(field, Long.class, "a whole number");
    }

    /** A whole number that is not negative. */
    long size(String field) {
        return between(field, 0, MOST);
    }

    /** A whole number from {@code least} to {@code most}. */
    int count(String field, int least, int most) {
        return (int) between(field, least, most);
    }

    private long between(String field, long least, long most) {
        long value = whole(field);
        if (value < least || value > most) {
            throw wrong(field, "is " + value + ": expected " + least + " to " + most);
        }
        return value;
    }

    JsonTree object(String field) {
        return tree(path(field), wanted(field, Map.class, "an object"));
    }

    List<JsonTree> objects(String field) {
        List<?> items = wanted(field, List.class, "an array");
        List<JsonTree> objects = new ArrayList<>();
        for (Object item : items) {
            String at = path(field) + "[" + objects.size() + "]";
            if (!(item instanceof Map<?, ?> map)) {
                throw new IllegalArgumentException(
                        at + " is " + kind(item) + ": expected an object");
            }
            objects.add(tree(at, map));
        }
        return objects;
    }

    List<Double> numbers(String field) {
        List<Double> numbers = new ArrayList<>();
        for (Object item : wanted(field, List.class, "an array")) {
            if (!(item instanceof Number number)) {
                throw wrong(field, "holds " + kind(item) + ": expected numbers");
            }
            numbers.add(checked(field, number));
        }
        return numbers;
    }

    /** Whole numbers from 1 on, at least one of them. */
    List<Integer> counts(String field) {
        List<Integer> counts = new ArrayList<>();
        for (double number : numbers(field)) {
            if (number < 1 || number > Integer.MAX_VALUE || number != Math.rint(number)) {
                throw wrong(field, "holds " + number + ": expected whole numbers from 1 on");
            }
            counts.add((int) number);
        }
        if (counts.isEmpty()) {
            throw wrong(field, "is empty: expected at least one number");
        }
        return counts;
    }

    /** What an {@link ArrayReader} made of the field. */
    <T> T wanted(String field, Class<T> type, String expected) {
        Object value = values.get(field);
        if (!type.isInstance(value)) {
            throw wrong(
                    field,
                    (values.containsKey(field) ? "is " + kind(value) : "is missing")
                            + ": expected "
                            + expected);
        }
        return type.cast(value);
    }

    IllegalArgumentException wrong(String field, String what) {
        return new IllegalArgumentException(path(field) + " " + what);
    }

    private String path(String field) {
        return path + (path.endsWith("]") || path.contains(": ") ? "." : ": ") + field;
    }

    private static JsonTree tree(String path, Map<?, ?> map) {
        Map<String, Object> values = new LinkedHashMap<>();
        map.forEach((key, value) -> values.put((String) key, value));
        return new JsonTree(path, values);
    }

    /** Text out of a record, made fit for a message: on one line, and not too long. */
    static String excerpt(String text) {
        String head = text.length() <= EXCERPT_CHARS ? text : text.substring(0, EXCERPT_CHARS);
        String line = head.replaceAll("[\\p{Cc}\\u2028\\u2029]", "?");
        return head.length() == text.length() ? line : line + "...";
    }

    private static String kind(Object value) {
        return switch (value) {
            case null -> "null";
            case String text -> "the text \"" + excerpt(text) + "\"";
            case Map<?, ?> map -> "an object";
            case List<?> list -> "an array";
            default -> value.toString();
        };
    }

    /** Writes the fields into the object that is open, as they were read. */
    void write(JsonGenerator json) throws IOException {
        for (Map.Entry<String, Object> entry : values.entrySet()) {
            json.writeFieldName(entry.getKey());
            write(entry.getValue(), json);
        }
    }

    private static void write(Object value, JsonGenerator json) throws IOException {
        switch (value) {
            case null -> json.writeNull();
            case String text -> json.writeString(text);
            case Boolean flag -> json.writeBoolean(flag);
            case Long whole -> json.writeNumber(whole);
            case Double number -> json.writeNumber(number);
            case Map<?, ?> map -> {
                json.writeStartObject();
                tree("", map).write(json);
                json.writeEndObject();
            }
            case List<?> list -> {
                json.writeStartArray();
                for (Object item : list) {
                    write(item, json);
                }
                json.writeEndArray();
            }
            default -> throw new IllegalStateException("no JSON: " + value.getClass());
        }
    }
}
