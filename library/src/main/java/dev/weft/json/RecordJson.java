package dev.weft.json;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.PrettyPrinter;
import dev.weft.json.RecordShape.Component;
import java.io.IOException;
import java.lang.reflect.ParameterizedType;
import java.util.ArrayList;
import java.util.List;

/**
 * Records as JSON: a field for each component, in their order, by its name. Components are texts,
 * numbers, flags, enums (by their labels), records, or lists of these; what is written may also be
 * arrays of longs. Doubles that are infinite or NaN are null. {@link JsonField} says what else a
 * component may be. Stateless and thread-safe.
 */
public final class RecordJson {

    private RecordJson() {}

    /** Writes the record's fields into the open object. */
    public static void fields(JsonGenerator json, Record record) throws IOException {
        for (Component component : RecordShape.of(record.getClass()).components()) {
            Object value = component.in(record);
            JsonField field = component.field();
            if (field.flat()) {
                if (value != null) {
                    fields(json, (Record) value);
                }
            } else if (!field.omitted() || !isNone(value, component)) {
                json.writeFieldName(component.name());
                if (field.lines()) {
                    lines(json, (List<?>) value);
                } else if (field.least() == JsonField.ANY && value instanceof Double number) {
                    json.writeNumber(number);
                } else {
                    write(json, value);
                }
            }
        }
    }

    private static boolean isNone(Object value, Component component) {
        Object none = none(component.type(), component.field().least());
        return value == null || component.type().isPrimitive() && value.equals(none);
    }

    /** Writes one field into the open object. */
    public static void field(JsonGenerator json, String name, Object value) throws IOException {
        json.writeFieldName(name);
        write(json, value);
    }

    private static void lines(JsonGenerator json, List<?> elements) throws IOException {
        PrettyPrinter indented = json.getPrettyPrinter();
        if (indented != null) {
            json.setPrettyPrinter(new ElementPerLine(" : ", "]"));
        }
        write(json, elements);
        json.setPrettyPrinter(indented);
    }

    private static void write(JsonGenerator json, Object value) throws IOException {
        switch (value) {
            case null -> json.writeNull();
            case String text -> json.writeString(text);
            case Boolean flag -> json.writeBoolean(flag);
            case Integer number -> json.writeNumber(number);
            case Long number -> json.writeNumber(number);
            case Double number -> number(json, number);
            case Enum<?> constant -> json.writeString(JsonObject.label(constant));
            case long[] numbers -> json.writeArray(numbers, 0, numbers.length);
            case List<?> elements -> {
                json.writeStartArray();
                for (Object element : elements) {
                    write(json, element);
                }
                json.writeEndArray();
            }
            case Record record -> {
                json.writeStartObject();
                fields(json, record);
                json.writeEndObject();
            }
            default -> throw new IllegalArgumentException("no JSON for a " + value.getClass());
        }
    }

    private static void number(JsonGenerator json, double number) throws IOException {
        if (Double.isFinite(number)) {
            json.writeNumber(number);
        } else {
            json.writeNull();
        }
    }

    /**
     * A record of the fields of an object; it may have others.
     *
     * @throws IllegalArgumentException with one line, if a field is missing or wrong
     */
    public static <R extends Record> R read(Class<R> type, JsonObject json) {
        RecordShape shape = RecordShape.of(type);
        List<Object> values = new ArrayList<>();
        shape.components().forEach(component -> values.add(value(component, json)));
        return type.cast(shape.create(values));
    }

    private static Object value(Component component, JsonObject json) {
        String name = component.name();
        JsonField field = component.field();
        Class<?> type = component.type();
        if (field.flat()) {
            return record(type, json);
        }
        boolean optional = field.optional() || field.omitted();
        if (field.derived() || optional && !json.hasValue(name)) {
            return none(type, field.least());
        } else if (type == String.class) {
            return json.text(name);
        } else if (type == boolean.class || type == Boolean.class) {
            return json.flag(name);
        } else if (type == int.class || type == Integer.class) {
            return json.count(name, (int) field.least(), mostInt(field));
        } else if (type == long.class || type == Long.class) {
            boolean any = field.least() == JsonField.ANY;
            return json.whole(name, field.least(), any ? Long.MAX_VALUE : field.most());
        } else if (type == double.class) {
            return field.least() == JsonField.ANY ? json.anyNumber(name) : json.number(name);
        } else if (type.isEnum()) {
            return json.choice(name, (Enum<?>[]) type.getEnumConstants());
        }
        return type == List.class ? list(component, json) : record(type, json.object(name));
    }

    private static int mostInt(JsonField field) {
        return (int) Math.min(Integer.MAX_VALUE, field.most());
    }

    private static Object none(Class<?> type, long least) {
        if (type == int.class) {
            return (int) least;
        } else if (type == long.class) {
            return least;
        } else if (type == double.class) {
            return Double.NaN;
        }
        return type == boolean.class ? false : null;
    }

    private static List<?> list(Component component, JsonObject json) {
        List<?> elements = elements(component, json);
        if (elements.isEmpty() && component.field().some()) {
            throw json.refusal(component.name(), "at least one element");
        }
        return elements;
    }

    private static List<?> elements(Component component, JsonObject json) {
        Class<?> element =
                (Class<?>) ((ParameterizedType) component.generic()).getActualTypeArguments()[0];
        String name = component.name();
        if (element == String.class) {
            return json.lines(name);
        } else if (element == Integer.class) {
            JsonField field = component.field();
            return json.counts(name, (int) field.least(), mostInt(field));
        } else if (element == Double.class) {
            return json.numbers(name);
        }
        return json.objects(name, element, one -> record(element, one));
    }

    private static Object record(Class<?> type, JsonObject json) {
        return read(type.asSubclass(Record.class), json);
    }
}
