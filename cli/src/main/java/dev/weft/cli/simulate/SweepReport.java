package dev.weft.cli.simulate;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.console.Console;
import dev.weft.cli.console.TextTable;
import dev.weft.cli.console.Version;
import dev.weft.json.Json;
import dev.weft.report.RecordReader;
import java.io.IOException;
import java.io.Writer;
import java.util.List;

/** A sweep for people, as comma separated values, and as JSON of docs/sweep-record.md. */
record SweepReport(Sweep sweep, List<Sweep.Row> rows) {

    void print(Console console) {
        console.info(
                "Simulated on " + sweep.machine().name() + ": " + sweep.machine().description());
        console.info(
                ("%s combinations, A %s, B %s; * is the fastest of its problem, chunks are"
                                + " per source")
                        .formatted(rows.size(), sweep.aType().label(), rhs()));
        TextTable table =
                new TextTable(
                        "M",
                        "K",
                        "N",
                        "ranks",
                        "algorithm",
                        "chunks",
                        "ms",
                        "speedup",
                        "of limit",
                        "");
        rows.forEach(row -> add(table, row));
        table.lines().forEach(console::print);
    }

    private static void add(TextTable table, Sweep.Row row) {
        boolean done = row.reason() == null;
        table.row(
                Long.toString(row.shape().m()),
                Long.toString(row.shape().k()),
                Long.toString(row.shape().n()),
                Integer.toString(row.shape().ranks()),
                row.algorithm().label(),
                done ? Integer.toString(row.chunksPerSource()) : "-",
                done ? text("%.3f", row.ns() / 1e6) : "-",
                Double.isNaN(row.speedup()) ? "-" : text("%.2fx", row.speedup()),
                done ? text("%.1f%%", 100 * row.limitFraction()) : "-",
                done ? row.best() ? "*" : "" : row.reason());
    }

    private String rhs() {
        return sweep.columnSharded() ? "column-sharded" : "replicated";
    }

    void writeCsv(Writer writer) throws IOException {
        writer.write(
                "m,k,n,ranks,algorithm,splits,chunks,chunkRows,lanes,predictedUs,sequentialUs,"
                        + "speedup,limitFraction,best,reason\n");
        for (Sweep.Row row : rows) {
            boolean done = row.reason() == null;
            Sweep.Shape shape = row.shape();
            List<Object> cells =
                    List.of(
                            shape.m(),
                            shape.k(),
                            shape.n(),
                            shape.ranks(),
                            row.algorithm().label(),
                            row.splits() == 0 ? "" : row.splits(),
                            done ? row.chunksPerSource() : "",
                            done ? row.chunkRows() : "",
                            done ? row.lanes() : "",
                            done ? row.ns() / 1e3 : "",
                            Double.isNaN(row.sequentialNs()) ? "" : row.sequentialNs() / 1e3,
                            Double.isNaN(row.speedup()) ? "" : row.speedup(),
                            done ? row.limitFraction() : "",
                            row.best(),
                            done ? "" : '"' + row.reason().replace("\"", "\"\"") + '"');
            writer.write(String.join(",", cells.stream().map(String::valueOf).toList()) + '\n');
        }
    }

    void writeJson(JsonGenerator json) throws IOException {
        json.writeStringField("schema", RecordReader.SWEEP);
        json.writeStringField("weft", Version.number());
        json.writeStringField("machine", sweep.machine().name());
        json.writeStringField("aDtype", sweep.aType().label());
        json.writeStringField("outDtype", sweep.outType().label());
        json.writeStringField("rhs", rhs());
        json.writeArrayFieldStart("rows");
        for (Sweep.Row row : rows) {
            writeJson(json, row);
        }
        json.writeEndArray();
    }

    private static void writeJson(JsonGenerator json, Sweep.Row row) throws IOException {
        json.writeStartObject();
        json.writeNumberField("m", row.shape().m());
        json.writeNumberField("k", row.shape().k());
        json.writeNumberField("n", row.shape().n());
        json.writeNumberField("ranks", row.shape().ranks());
        json.writeStringField("algorithm", row.algorithm().label());
        if (row.splits() == 0) {
            json.writeNullField("splits");
        } else {
            json.writeNumberField("splits", row.splits());
        }
        if (row.reason() == null) {
            json.writeNumberField("chunks", row.chunksPerSource());
            json.writeNumberField("chunkRows", row.chunkRows());
            json.writeNumberField("lanes", row.lanes());
            json.writeNumberField("predictedUs", row.ns() / 1e3);
            // Null where there is no sequential call to compare with.
            Json.numberOrNull(json, "sequentialUs", row.sequentialNs() / 1e3);
            Json.numberOrNull(json, "speedup", row.speedup());
            json.writeNumberField("limitFraction", row.limitFraction());
            json.writeBooleanField("best", row.best());
            json.writeNullField("reason");
        } else {
            json.writeStringField("reason", row.reason());
        }
        json.writeEndObject();
    }
}
