package dev.weft.report;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON as maps, lists, texts, {@link Long}, {@link Double}, booleans and null; shares no code with
 * Weft's own readers, so that a test which compares with them can fail. Paths are names and places
 * with dots between them: {@code ranks.0.tracks}.
 */
public final class JsonText {

    private static final JsonFactory JSON =
            JsonFactory.builder().enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION).build();
    private static final String MARK = "@the mark@";

    private JsonText() {}

    /** All of the text, which must be one value and have no name twice. */
    public static Object parse(String text) {
        try (JsonParser parser = JSON.createParser(text)) {
            parser.nextToken();
            Object value = value(parser);
            if (parser.nextToken() != null) {
                throw new IllegalArgumentException("more than one value: " + text);
            }
            return value;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Object value(JsonParser parser) throws IOException {
        return switch (parser.currentToken()) {
            case START_OBJECT -> {
                Map<String, Object> fields = new LinkedHashMap<>();
                while (parser.nextToken() != JsonToken.END_OBJECT) {
                    String name = parser.currentName();
                    parser.nextToken();
                    fields.put(name, value(parser));
                }
                yield fields;
            }
            case START_ARRAY -> {
                List<Object> values = new ArrayList<>();
                while (parser.nextToken() != JsonToken.END_ARRAY) {
                    values.add(value(parser));
                }
                yield values;
            }
            case VALUE_STRING -> parser.getText();
            case VALUE_NUMBER_INT -> parser.getLongValue();
            case VALUE_NUMBER_FLOAT -> parser.getDoubleValue();
            case VALUE_TRUE -> true;
            case VALUE_FALSE -> false;
            case VALUE_NULL -> null;
            default -> throw new IOException("no value: " + parser.currentToken());
        };
    }

    /** What lies at the end of the path. */
    public static Object at(Object tree, String path) {
        Object value = tree;
        for (String step : path.split("\\.")) {
            value = child(value, step);
        }
        return value;
    }

    private static Object child(Object value, String step) {
        if (value instanceof List<?> list) {
            return list.get(Integer.parseInt(step));
        }
        if (value instanceof Map<?, ?> map && map.containsKey(step)) {
            return map.get(step);
        }
        throw new IllegalArgumentException("no " + step + " in " + value);
    }

    public static List<?> list(Object tree, String path) {
        return (List<?>) at(tree, path);
    }

    public static String text(Object tree, String path) {
        return (String) at(tree, path);
    }

    public static long whole(Object tree, String path) {
        return (Long) at(tree, path);
    }

    public static double number(Object tree, String path) {
        return ((Number) at(tree, path)).doubleValue();
    }

    /** The same JSON with other text where the path ends. */
    public static String with(String json, String path, String raw) {
        Object tree = parse(json);
        change(tree, path, MARK);
        return write(tree).replace('"' + MARK + '"', raw);
    }

    /** The same JSON without what the path names. */
    public static String without(String json, String path) {
        Object tree = parse(json);
        change(tree, path, null);
        return write(tree);
    }

    /**
     * @param value null to remove it
     */
    @SuppressWarnings("unchecked")
    private static void change(Object tree, String path, Object value) {
        int dot = path.lastIndexOf('.');
        Object parent = dot < 0 ? tree : at(tree, path.substring(0, dot));
        String name = path.substring(dot + 1);
        if (parent instanceof List<?> list) {
            ((List<Object>) list).set(Integer.parseInt(name), value);
        } else if (value == null) {
            ((Map<String, Object>) parent).remove(name);
        } else {
            ((Map<String, Object>) parent).put(name, value);
        }
    }

    public static String write(Object tree) {
        StringWriter text = new StringWriter();
        try (JsonGenerator json = JSON.createGenerator(text)) {
            write(tree, json);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return text.toString();
    }

    private static void write(Object value, JsonGenerator json) throws IOException {
        switch (value) {
            case Map<?, ?> map -> {
                json.writeStartObject();
                for (Map.Entry<?, ?> entry : map.entrySet()) {
                    json.writeFieldName((String) entry.getKey());
                    write(entry.getValue(), json);
                }
                json.writeEndObject();
            }
            case List<?> list -> {
                json.writeStartArray();
                for (Object item : list) {
                    write(item, json);
                }
                json.writeEndArray();
            }
            case Integer whole -> json.writeNumber(whole);
            case Long whole -> json.writeNumber(whole);
            case Double number -> json.writeNumber(number);
            case Boolean flag -> json.writeBoolean(flag);
            case null -> json.writeNull();
            default -> json.writeString(value.toString());
        }
    }
}
