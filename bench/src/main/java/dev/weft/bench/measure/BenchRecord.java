package dev.weft.bench.measure;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.console.Version;
import dev.weft.json.RecordJson;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.stream.Stream;

/**
 * All that one bench found; field names and units are those of docs/bench-record.md.
 *
 * @param machine where it ran: texts, whole numbers, and figures by name
 * @param iterations rounds that counted, where all rows have as many
 */
public record BenchRecord(
        Map<String, Object> machine,
        boolean quick,
        OptionalInt iterations,
        String startedAt,
        List<BenchRow> rows,
        List<Skipped> skipped) {

    private static final Path CPU_INFO = Path.of("/proc/cpuinfo");
    private static final String SCHEMA = "weft.bench/1";

    /** What was not measured, and why. */
    public record Skipped(String item, String reason) {}

    /** What every machine tells. */
    public static Map<String, Object> host() throws IOException {
        Map<String, Object> machine = new LinkedHashMap<>();
        machine.put("os", System.getProperty("os.name"));
        machine.put("arch", System.getProperty("os.arch"));
        machine.put("processor", processor());
        machine.put("cores", Runtime.getRuntime().availableProcessors());
        return machine;
    }

    /**
     * The model's name as the system calls it, or {@code unknown} where the system does not tell.
     */
    private static String processor() throws IOException {
        if (!Files.isReadable(CPU_INFO)) {
            return "unknown";
        }
        try (Stream<String> lines = Files.lines(CPU_INFO)) {
            return lines.filter(line -> line.startsWith("model name"))
                    .map(line -> line.substring(line.indexOf(':') + 1).strip())
                    .findFirst()
                    .orElse("unknown");
        }
    }

    /** Writes the record's fields into the object that is open. */
    public void write(JsonGenerator json) throws IOException {
        json.writeStringField("schema", SCHEMA);
        json.writeStringField("weft", Version.number());
        json.writeStringField("java", Runtime.version().toString());
        json.writeObjectFieldStart("machine");
        for (Map.Entry<String, Object> fact : machine.entrySet()) {
            json.writeFieldName(fact.getKey());
            if (fact.getValue() instanceof Map<?, ?> figures) {
                json.writeStartObject();
                numbers(json, figures);
                json.writeEndObject();
            } else {
                json.writeObject(fact.getValue());
            }
        }
        json.writeEndObject();
        json.writeBooleanField("quick", quick);
        if (iterations.isPresent()) {
            json.writeNumberField("iterations", iterations.getAsInt());
        }
        json.writeStringField("startedAt", startedAt);
        json.writeArrayFieldStart("rows");
        for (BenchRow row : rows) {
            row(json, row);
        }
        json.writeEndArray();
        RecordJson.field(json, "skipped", skipped);
    }

    private static void row(JsonGenerator json, BenchRow row) throws IOException {
        json.writeStartObject();
        json.writeStringField("item", row.item());
        json.writeStringField("case", row.name());
        json.writeStringField("peer", row.peer());
        number(json, "ratio", row.ratio());
        numbers(json, row.figures());
        if (!row.checks().isEmpty()) {
            json.writeNumberField("pass", row.pass() ? 1 : 0);
            json.writeBooleanField("verified", row.verified());
            RecordJson.field(json, "checks", row.checks());
            RecordJson.field(json, "misses", row.misses());
        }
        json.writeEndObject();
    }

    private static void numbers(JsonGenerator json, Map<?, ?> numbers) throws IOException {
        for (Map.Entry<?, ?> number : numbers.entrySet()) {
            number(json, (String) number.getKey(), (Double) number.getValue());
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
