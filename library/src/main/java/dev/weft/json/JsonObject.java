package dev.weft.json;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import dev.weft.json.JsonTree.Fields;
import dev.weft.json.JsonTree.Numeral;
import dev.weft.process.SafeText;
import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.DoublePredicate;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/**
 * An object in a JSON text. Fields are read by name and kind; an unexpected value is an {@link
 * IllegalArgumentException} with a one-line message: the text's origin, the field's path, the
 * actual value and what is expected. Fields that are not read are allowed, unless {@link #build} is
 * called. For one thread.
 */
public final class JsonObject {

    /** More than anything that is counted or timed; a double holds it exactly. */
    public static final long MOST = 1L << 53;

    /**
     * Arrays that are too large to keep as a tree: each of their objects is read at once.
     *
     * @param path of the arrays, such as {@code tracks[3].spans}
     * @param reader of an element
     */
    public record LargeArrays(Pattern path, Function<JsonObject, ?> reader) {}

    private final String origin;
    private final String path;
    private final Fields fields;
    private final Set<String> asked = new LinkedHashSet<>();

    JsonObject(String origin, String path, Fields fields) {
        this.origin = origin;
        this.path = path;
        this.fields = fields;
    }

    /**
     * Reads {@code json}, which must be one object.
     *
     * @param origin the name of the text in messages
     */
    public static JsonObject parse(String origin, byte[] json) {
        return read(origin, new ByteArrayInputStream(json), null);
    }

    /**
     * Reads one object from a stream, which is closed.
     *
     * @param large null if no arrays are
     */
    public static JsonObject read(String origin, InputStream in, LargeArrays large) {
        try (InputStream text = new BufferedInputStream(in);
                JsonParser parser = Json.parser(origin, text)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw new IllegalArgumentException(origin + ": is not a JSON object { ... }");
            }
            Fields fields = new JsonTree(origin, parser, large).fields();
            if (parser.nextToken() != null) {
                throw new IllegalArgumentException(origin + ": has text behind its JSON object");
            }
            return new JsonObject(origin, "", fields);
        } catch (JacksonException e) {
            throw new IllegalArgumentException(origin + ": is not JSON" + reason(e), e);
        } catch (IOException e) {
            throw new IllegalArgumentException(origin + ": cannot be read: " + e.getMessage(), e);
        }
    }

    private static String reason(JacksonException e) {
        String where =
                e.getLocation() == null
                        ? ""
                        : " in line %d, column %d"
                                .formatted(
                                        e.getLocation().getLineNr(), e.getLocation().getColumnNr());
        return where + ": " + SafeText.excerpt(e.getOriginalMessage());
    }

    /** Whether the field is there, even as null. */
    public boolean has(String name) {
        asked.add(name);
        return fields.values().containsKey(name);
    }

    /** Whether the field is there and not null. */
    public boolean hasValue(String name) {
        return has(name) && fields.values().get(name) != null;
    }

    public JsonObject object(String name) {
        return object(name, value(name, "an object"));
    }

    public List<JsonObject> objects(String name) {
        return elements(name, "an array", this::object);
    }

    /** What {@code reader} makes of objects, unless they were read as {@link LargeArrays}. */
    public <T> List<T> objects(String name, Class<T> type, Function<JsonObject, ?> reader) {
        return elements(
                name,
                "an array",
                (element, value) ->
                        type.cast(
                                type.isInstance(value)
                                        ? value
                                        : reader.apply(object(element, value))));
    }

    private JsonObject object(String name, Object value) {
        return new JsonObject(origin, pathOf(name), cast(name, value, Fields.class, "an object"));
    }

    public String text(String name) {
        return required(name, String.class, "a text");
    }

    /** A text that is not blank and has no control characters. */
    public String line(String name) {
        return line(name, value(name, "a line of text"));
    }

    /** {@code fallback} if it is missing. */
    public String line(String name, String fallback) {
        return has(name) ? line(name) : fallback;
    }

    public List<String> lines(String name) {
        return elements(name, "an array of lines of text", this::line);
    }

    private String line(String name, Object value) {
        if (value instanceof String text
                && !text.isBlank()
                && text.chars().noneMatch(Character::isISOControl)) {
            return text;
        }
        throw refusal(name, value, "a line of text");
    }

    /** A finite number above zero. */
    public double positive(String name) {
        return finite(name, number -> number > 0, "a number above 0");
    }

    /** A finite number of zero or more. */
    public double amount(String name) {
        return finite(name, number -> number >= 0, "a number of 0 or more");
    }

    public double amount(String name, double fallback) {
        return has(name) ? amount(name) : fallback;
    }

    private double finite(String name, DoublePredicate fits, String expected) {
        double number = required(name, Numeral.class, expected).value();
        if (Double.isFinite(number) && fits.test(number)) {
            return number;
        }
        throw refusal(name, expected);
    }

    /** A number from zero to {@link #MOST}. */
    public double number(String name) {
        return number(name, value(name, "a number"));
    }

    public List<Double> numbers(String name) {
        return elements(name, "an array of numbers", this::number);
    }

    private double number(String name, Object value) {
        double number = cast(name, value, Numeral.class, "a number").value();
        if (number >= 0 && number <= MOST) {
            return number;
        }
        throw refusal(name, value, "a number from 0 to " + MOST);
    }

    /** Any number, also a negative, infinite or NaN one; JSON has the last two as text. */
    public double anyNumber(String name) {
        Object value = value(name, "a number");
        if ("NaN".equals(value) || "Infinity".equals(value) || "-Infinity".equals(value)) {
            return Double.parseDouble((String) value);
        }
        return cast(name, value, Numeral.class, "a number").value();
    }

    /** A whole number from zero to {@link #MOST}. */
    public long size(String name) {
        return whole(name, value(name, "a whole number"), 0, MOST);
    }

    /** A whole number from {@code least} to {@code most}. */
    public int count(String name, int least, int most) {
        return (int) whole(name, value(name, wholeFrom(least, most)), least, most);
    }

    /** Whole numbers from {@code least} to {@code most}. */
    public List<Integer> counts(String name, int least, int most) {
        return elements(
                name,
                "an array of whole numbers",
                (element, value) -> (int) whole(element, value, least, most));
    }

    /** A whole number from {@code least} to {@code most}. */
    public long whole(String name, long least, long most) {
        return whole(name, value(name, "a whole number"), least, most);
    }

    private long whole(String name, Object value, long least, long most) {
        Long whole = value instanceof Numeral numeral ? numeral.whole() : null;
        if (whole == null || whole < least || whole > most) {
            throw refusal(name, value, wholeFrom(least, most));
        }
        return whole;
    }

    private static String wholeFrom(long least, long most) {
        return "a whole number from " + least + " to " + most;
    }

    public boolean flag(String name) {
        return required(name, Boolean.class, "true or false");
    }

    public boolean flag(String name, boolean fallback) {
        return has(name) ? flag(name) : fallback;
    }

    /** One of an enum's constants by its {@link #label}. */
    public <E extends Enum<?>> E choice(String name, E[] choices) {
        List<String> labels = Arrays.stream(choices).map(JsonObject::label).toList();
        String expected = "one of " + String.join(", ", labels);
        int index = labels.indexOf(value(name, expected));
        if (index < 0) {
            throw refusal(name, expected);
        }
        return choices[index];
    }

    /** How a file names a constant: {@code as-planned}. */
    public static String label(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    private <T> T required(String name, Class<T> type, String expected) {
        return cast(name, value(name, expected), type, expected);
    }

    /** The result of {@code maker}; fields that it has not read are refused. */
    public <T> T build(Supplier<T> maker) {
        for (String name : fields.values().keySet()) {
            if (!asked.contains(name)) {
                throw refusal(name, "no such field, but " + String.join(", ", asked));
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
    public IllegalArgumentException refusal(String name, String expected) {
        return refusal(name, fields.values().get(name), expected);
    }

    private IllegalArgumentException refusal(String name, Object value, String expected) {
        return wrong(name, "is " + shown(value) + ": expected " + expected);
    }

    /** An error about a field, in the caller's words. */
    public IllegalArgumentException wrong(String name, String what) {
        return new IllegalArgumentException(origin + ": " + pathOf(name) + " " + what);
    }

    private <T> T cast(String name, Object value, Class<T> type, String expected) {
        if (type.isInstance(value)) {
            return type.cast(value);
        }
        throw refusal(name, value, expected);
    }

    private <T> List<T> elements(
            String name, String expected, BiFunction<String, Object, T> reader) {
        List<T> read = new ArrayList<>();
        for (Object element : required(name, List.class, expected)) {
            read.add(reader.apply(name + "[" + read.size() + "]", element));
        }
        return read;
    }

    private Object value(String name, String expected) {
        if (!has(name)) {
            String others = SafeText.excerpt(String.join(", ", fields.values().keySet()));
            String beside = others.isEmpty() ? "" : " beside " + others;
            throw wrong(name, "is missing: expected " + expected + beside);
        }
        return fields.values().get(name);
    }

    private String pathOf(String name) {
        return path.isEmpty() ? SafeText.excerpt(name) : path + "." + SafeText.excerpt(name);
    }

    private static String shown(Object value) {
        return switch (value) {
            case null -> "null";
            case String text -> '"' + SafeText.excerpt(text) + '"';
            case Numeral numeral -> SafeText.excerpt(numeral.text());
            case Fields ignored -> "an object";
            case List<?> elements -> elements.isEmpty() ? "an empty array" : "an array";
            case Boolean flag -> flag.toString();
            default -> "an array";
        };
    }

    /** Writes the fields into the open object, as they were read. */
    public void write(JsonGenerator json) throws IOException {
        JsonTree.write(fields, json);
    }
}
