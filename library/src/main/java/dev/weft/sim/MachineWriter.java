package dev.weft.sim;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.DefaultIndenter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import com.fasterxml.jackson.core.util.Separators;
import dev.weft.json.Json;
import dev.weft.json.JsonObject;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.io.StringWriter;
import java.lang.reflect.RecordComponent;
import java.util.List;
import java.util.Map;

/** Writes a machine's file: a field for each component of its records, in their order. */
final class MachineWriter {

    /** Whole numbers up to this are written without a fraction, and read back exactly. */
    private static final double MAX_WHOLE = 0x1p53;

    private final JsonGenerator json;

    private MachineWriter(JsonGenerator json) {
        this.json = json;
    }

    static String text(Machine machine) throws IOException {
        DefaultIndenter lines = new DefaultIndenter("  ", "\n");
        DefaultPrettyPrinter printer =
                new DefaultPrettyPrinter(
                        Separators.createDefaultInstance()
                                .withObjectFieldValueSpacing(Separators.Spacing.AFTER));
        printer.indentObjectsWith(lines);
        printer.indentArraysWith(lines);
        StringWriter text = new StringWriter();
        try (JsonGenerator json = Json.generator(text, printer)) {
            json.writeStartObject();
            json.writeStringField("schema", MachineFile.SCHEMA);
            new MachineWriter(json).fields(machine);
            json.writeEndObject();
        }
        return text + "\n";
    }

    private void fields(Record record) throws IOException {
        for (RecordComponent component : record.getClass().getRecordComponents()) {
            String name = component.getName();
            Object value = value(component, record);
            boolean said =
                    switch (name) {
                        case "description" -> !value.equals("");
                        case "torus" -> !value.equals(List.of());
                        case "arrivalsOnChip" -> !value.equals(false);
                        case "network" -> value != null;
                        case "inCalls" -> !value.equals(CoreEngine.CallCosts.DEFAULTS);
                        case "copies" -> !value.equals(Machine.Copies.PLAIN);
                        default -> true;
                    };
            if (said) {
                json.writeFieldName(name);
                write(value);
            }
        }
    }

    private static Object value(RecordComponent component, Record record) {
        try {
            return component.getAccessor().invoke(record);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("cannot read " + component + " of " + record, e);
        }
    }

    private void write(Object value) throws IOException {
        switch (value) {
            case String text -> json.writeString(text);
            case Boolean flag -> json.writeBoolean(flag);
            case Integer number -> json.writeNumber(number);
            case Long number -> json.writeNumber(number);
            case Double number -> number(number);
            case Enum<?> constant -> json.writeString(JsonObject.label(constant));
            case List<?> elements -> {
                json.writeStartArray();
                for (Object element : elements) {
                    write(element);
                }
                json.writeEndArray();
            }
            case Map<?, ?> byType -> {
                json.writeStartObject();
                for (DType type : DType.values()) {
                    if (byType.containsKey(type)) {
                        json.writeFieldName(type.label());
                        write(byType.get(type));
                    }
                }
                json.writeEndObject();
            }
            case Record record -> {
                json.writeStartObject();
                if (record instanceof Engine engine) {
                    String kind = JsonObject.label(MachineReader.EngineType.of(engine));
                    json.writeStringField("kind", kind);
                }
                fields(record);
                json.writeEndObject();
            }
            default -> throw new IllegalArgumentException("no JSON for a " + value.getClass());
        }
    }

    private void number(double value) throws IOException {
        if (value == Math.rint(value) && Double.compare(value, 0) >= 0 && value <= MAX_WHOLE) {
            json.writeNumber((long) value);
        } else {
            json.writeNumber(value);
        }
    }
}
