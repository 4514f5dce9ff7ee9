package dev.weft.sim;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/**
 * An object out of a JSON text. Fields are asked for by name and kind; what is not as expected is
 * an {@link IllegalArgumentException} of one line with the text's origin, the field's path, the
 * actual value and what would be right. {@link #build} refuses fields that nobody has asked for.
 * For one thread.
 */
final class JsonObject {

    /** No machine has more of anything than this. */
    static final int MAX_COUNT = 1 << 24;

    /** Longer texts are cut in messages. */
    private static final int EXCERPT_CHARS = 60;

    /** Names are used once: keeping tables of them for the next text would only grow. */
    private static final JsonFactory JSON =
            JsonFactory.builder()
                    .disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
                    .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .build();

    /** A number as it is written, so that whole ones stay whole and messages show it. */
    private record Numeral(String text) {

        @Override
        public String toString() {
            return excerpt(text);
        }
    }

    private final String origin;
    private final String path;
    private final Map<String, Object> values;
    private final Set<String> asked = new LinkedHashSet<>();

    private JsonObject(String origin, String path, Map<String, Object> values) {
        this.origin = origin;
        this.path = path;
        this.values = values;
    }

    /** Reads the one object that {@code json} has to be. */
    static JsonObject parse(String origin, byte[] json) {
        try (JsonParser parser = JSON.createParser(json)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw new IllegalArgumentException(origin + ": is not a JSON object { ... }");
            }
            Map<String, Object> values = fields(parser);
            if (parser.nextToken() != null) {
                throw new IllegalArgumentException(origin + ": has text behind its JSON object");
            }
            return new JsonObject(origin, "", values);
        } catch (IOException e) {
            throw new IllegalArgumentException(origin + ": is not JSON: " + reason(e), e);
        }
    }

    private static String reason(IOException e) {
        if (e instanceof JacksonException jackson && jackson.getLocation() != null) {
            return "line "
                    + jackson.getLocation().getLineNr()
                    + ", column "
                    + jackson.getLocation().getColumnNr()
                    + ": "
                    + excerpt(jackson.getOriginalMessage());
        }
        return excerpt(String.valueOf(e.getMessage()));
    }

    private static Map<String, Object> fields(JsonParser parser) throws IOException {
        Map<String, Object> values = new LinkedHashMap<>();
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
            String name = parser.currentName();
            parser.nextToken();
            values.put(name, value(parser));
        }
        return values;
    }

    private static Object value(JsonParser parser) throws IOException {
        return switch (parser.currentToken()) {
            case START_OBJECT -> fields(parser);
            case START_ARRAY -> {
                List<Object> elements = new ArrayList<>();
                while (parser.nextToken() != JsonToken.END_ARRAY) {
                    elements.add(value(parser));
                }
                yield elements;
            }
            case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> new Numeral(parser.getText());
            case VALUE_TRUE -> true;
            case VALUE_FALSE -> false;
            case VALUE_NULL -> null;
            default -> parser.getText();
        };
    }

    boolean has(String name) {
        asked.add(name);
        return values.containsKey(name);
    }

    JsonObject object(String name) {
        if (value(name, "an object { ... }") instanceof Map<?, ?> fields) {
            Map<String, Object> copy = new LinkedHashMap<>();
            fields.forEach((key, value) -> copy.put((String) key, value));
            return new JsonObject(origin, pathOf(name), copy);
        }
        throw refusal(name, "an object { ... }");
    }

    /** A line of text; {@code fallback} where it is left out. */
    String text(String name, String fallback) {
        return has(name) ? text(name) : fallback;
    }

    String text(String name) {
        return text(name, value(name, "a line of text"), "a line of text");
    }

    List<String> texts(String name) {
        List<String> texts = new ArrayList<>();
        for (Object element : elements(name, "a list of lines of text")) {
            texts.add(text(name + "[" + texts.size() + "]", element, "a line of text"));
        }
        return texts;
    }

    private String text(String name, Object value, String expected) {
        if (value instanceof String text
                && !text.isBlank()
                && text.chars().noneMatch(Character::isISOControl)) {
            return text;
        }
        throw refusal(name, value, expected);
    }

    /** A number above zero. */
    double positive(String name) {
        double number = number(name, "a number above 0");
        if (number > 0) {
            return number;
        }
        throw refusal(name, "a number above 0");
    }

    /** A number of zero or more. */
    double amount(String name) {
        double number = number(name, "a number of 0 or more");
        if (number >= 0) {
            return number;
        }
        throw refusal(name, "a number of 0 or more");
    }

    double amount(String name, double fallback) {
        return has(name) ? amount(name) : fallback;
    }

    private double number(String name, String expected) {
        if (value(name, expected) instanceof Numeral numeral) {
            double number = Double.parseDouble(numeral.text());
            if (Double.isFinite(number)) {
                return number;
            }
        }
        throw refusal(name, expected);
    }

    /** A whole number from {@code least} to {@link #MAX_COUNT}. */
    int count(String name, int least) {
        return count(name, value(name, wholeFrom(least)), least);
    }

    int count(String name, int least, int fallback) {
        return has(name) ? count(name, least) : fallback;
    }

    /** Whole numbers of one or more. */
    List<Integer> counts(String name) {
        List<Integer> counts = new ArrayList<>();
        for (Object element : elements(name, "a list of whole numbers")) {
            counts.add(count(name + "[" + counts.size() + "]", element, 1));
        }
        return counts;
    }

    private int count(String name, Object value, int least) {
        if (value instanceof Numeral numeral && numeral.text().matches("\\d{1,9}")) {
            int count = Integer.parseInt(numeral.text());
            if (count >= least && count <= MAX_COUNT) {
                return count;
            }
        }
        throw refusal(name, value, wholeFrom(least));
    }

    private static String wholeFrom(int least) {
        return "a whole number from " + least + " to " + MAX_COUNT;
    }

    boolean flag(String name, boolean fallback) {
        if (!has(name)) {
            return fallback;
        }
        if (values.get(name) instanceof Boolean flag) {
            return flag;
        }
        throw refusal(name, "true or false");
    }

    /** One of an enum's constants by its {@link #label}. */
    <E extends Enum<E>> E choice(String name, E[] choices) {
        List<String> labels = new ArrayList<>();
        for (E choice : choices) {
            labels.add(label(choice));
        }
        String expected = "one of " + String.join(", ", labels);
        int index = labels.indexOf(value(name, expected));
        if (index < 0) {
            throw refusal(name, expected);
        }
        return choices[index];
    }

    /** How a file names a constant: {@code as-planned}. */
    static String label(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /**
     * What {@code maker} makes of the fields, once all of them are known to have been asked for.
     */
    <T> T build(Supplier<T> maker) {
        for (String name : values.keySet()) {
            if (!asked.contains(name)) {
                throw new IllegalArgumentException(
                        origin
                                + ": "
                                + pathOf(name)
                                + " is "
                                + shown(values.get(name))
                                + ": expected no such field, but "
                                + String.join(", ", asked));
            }
        }
        try {
            return maker.get();
        } catch (IllegalArgumentException e) {
            String where = path.isEmpty() ? "" : path + ": ";
            throw new IllegalArgumentException(origin + ": " + where + e.getMessage(), e);
        }
    }

    /** An error about the value of a field. */
    IllegalArgumentException refusal(String name, String expected) {
        return refusal(name, values.get(name), expected);
    }

    private IllegalArgumentException refusal(String name, Object value, String expected) {
        return new IllegalArgumentException(
                origin + ": " + pathOf(name) + " is " + shown(value) + ": expected " + expected);
    }

    private Collection<?> elements(String name, String expected) {
        if (value(name, expected) instanceof List<?> elements) {
            return elements;
        }
        throw refusal(name, expected);
    }

    private Object value(String name, String expected) {
        if (!has(name)) {
            throw new IllegalArgumentException(
                    origin
                            + ": "
                            + pathOf(name)
                            + " is missing: expected "
                            + expected
                            + " beside "
                            + excerpt(String.join(", ", values.keySet())));
        }
        return values.get(name);
    }

    private String pathOf(String name) {
        return path.isEmpty() ? excerpt(name) : path + "." + excerpt(name);
    }

    private static String shown(Object value) {
        return switch (value) {
            case null -> "null";
            case String text -> '"' + excerpt(text) + '"';
            case Map<?, ?> ignored -> "an object";
            case List<?> elements -> elements.isEmpty() ? "an empty list" : "a list";
            default -> value.toString();
        };
    }

    /** Text made fit for a message: on one line, and not too long. */
    static String excerpt(String text) {
        String head = text.length() <= EXCERPT_CHARS ? text : text.substring(0, EXCERPT_CHARS);
        String line = head.replaceAll("[\\p{Cc}\\u2028\\u2029]", "?");
        return head.length() == text.length() ? line : line + "...";
    }
}
