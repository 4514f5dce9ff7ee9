package dev.weft.report;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.json.JsonObject;
import java.io.IOException;
import java.lang.reflect.RecordComponent;
import java.util.List;

/**
 * Writes records as JSON: a field for each component, in their order, by its name. Components are
 * texts, whole numbers, arrays of longs, flags, enums (by their labels), records, or lists of
 * these; or doubles, which are null if they are infinite or NaN.
 */
public final class RecordJson {

    private RecordJson() {}

    /** Writes the record's fields into the open object. */
    public static void fields(JsonGenerator json, Record record) throws IOException {
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            field(json, component.getName(), value(component, record));
        }
    }

    private static Object value(RecordComponent component, Record record) {
        try {
            // Records of other packages need not be public.
            component.getAccessor().setAccessible(true);
            return component.getAccessor().invoke(record);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot read " + component + " of " + record, e);
        }
    }

    /** Writes one field into the open object. */
    public static void field(JsonGenerator json, String name, Object value) throws IOException {
        json.writeFieldName(name);
        write(json, value);
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
}
