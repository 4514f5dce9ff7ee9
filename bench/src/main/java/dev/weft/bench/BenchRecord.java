package dev.weft.bench;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/**
 * All that one bench found; field names and units are those of docs/bench-record.md.
 *
 * @param figures of the whole machine, by name
 */
record BenchRecord(
        String weft,
        String java,
        Machine machine,
        boolean quick,
        String startedAt,
        List<BenchRow> rows,
        List<Skipped> skipped,
        Map<String, Double> figures) {

    static final String SCHEMA = "weft.bench/1";

    /**
     * Where it ran.
     *
     * @param processor as the system calls it, or {@code unknown}
     * @param cores that the system has for Java
     * @param coresUsed at most, by this bench
     * @param engine of Weft's products
     */
    record Machine(
            String os, String arch, String processor, int cores, int coresUsed, String engine) {}

    /** What was not measured, and why. */
    record Skipped(String item, String reason) {}

    /** Writes the record's fields into the object that is open. */
    void write(JsonGenerator json) throws IOException {
        json.writeStringField("schema", SCHEMA);
        json.writeStringField("weft", weft);
        json.writeStringField("java", java);
        json.writeObjectFieldStart("machine");
        json.writeStringField("os", machine.os);
        json.writeStringField("arch", machine.arch);
        json.writeStringField("processor", machine.processor);
        json.writeNumberField("cores", machine.cores);
        json.writeNumberField("coresUsed", machine.coresUsed);
        json.writeStringField("engine", machine.engine);
        json.writeObjectFieldStart("figures");
        numbers(json, figures);
        json.writeEndObject();
        json.writeEndObject();
        json.writeBooleanField("quick", quick);
        json.writeStringField("startedAt", startedAt);
        json.writeArrayFieldStart("rows");
        for (BenchRow row : rows) {
            row(json, row);
        }
        json.writeEndArray();
        json.writeArrayFieldStart("skipped");
        for (Skipped what : skipped) {
            json.writeStartObject();
            json.writeStringField("item", what.item);
            json.writeStringField("reason", what.reason);
            json.writeEndObject();
        }
        json.writeEndArray();
    }

    private static void row(JsonGenerator json, BenchRow row) throws IOException {
        json.writeStartObject();
        json.writeStringField("item", row.item());
        json.writeStringField("case", row.name());
        json.writeStringField("peer", row.peer());
        number(json, "ratio", row.ratio());
        numbers(json, row.figures());
        json.writeEndObject();
    }

    private static void numbers(JsonGenerator json, Map<String, Double> numbers)
            throws IOException {
        for (Map.Entry<String, Double> number : numbers.entrySet()) {
            number(json, number.getKey(), number.getValue());
        }
    }

    /**
     * Nanoseconds and other whole numbers without a point; what is no number as null, since JSON
     * has no other word for it.
     */
    private static void number(JsonGenerator json, String name, double value) throws IOException {
        if (!Double.isFinite(value)) {
            json.writeNullField(name);
        } else if (name.endsWith("Ns") || value == Math.rint(value)) {
            json.writeNumberField(name, Math.round(value));
        } else {
            json.writeNumberField(name, value);
        }
    }
}
