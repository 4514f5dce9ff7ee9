package dev.weft.cli.simulate;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.console.Console;
import dev.weft.cli.console.TextTable;
import dev.weft.cli.console.Version;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.simulate.Sweep.Price;
import dev.weft.cli.simulate.Sweep.Row;
import dev.weft.json.Json;
import dev.weft.report.RecordReader;
import java.io.IOException;
import java.io.Writer;
import java.util.List;

/** A sweep for people, as comma-separated values, and as JSON of docs/sweep-record.md. */
record SweepReport(Sweep sweep, List<Row> rows) {

    void print(Console console) {
        console.info(
                "Simulated on " + sweep.machine().name() + ": " + sweep.machine().description());
        console.info(
                ("%s combinations, A %s, B %s; * is the fastest of its problem, chunks are"
                                + " per source")
                        .formatted(rows.size(), sweep.aType().label(), rhs()));
        TextTable table = TextTable.of("M|K|N|ranks|algorithm|chunks|ms|speedup|of limit|");
        rows.forEach(row -> add(table, row));
        table.lines().forEach(console::print);
    }

    private static void add(TextTable table, Row row) {
        Price price = row.price();
        boolean done = price != null;
        table.row(
                Long.toString(row.shape().m()),
                Long.toString(row.shape().k()),
                Long.toString(row.shape().n()),
                Integer.toString(row.shape().ranks()),
                row.algorithm(),
                done ? Integer.toString(price.chunksPerSource()) : "-",
                done ? text("%.3f", price.ns() / 1e6) : "-",
                Double.isNaN(row.speedup()) ? "-" : text("%.2fx", row.speedup()),
                done ? text("%.1f%%", 100 * price.limitFraction()) : "-",
                done ? row.best() ? "*" : "" : row.reason());
    }

    private String rhs() {
        return SimRules.rhs(!sweep.op().equals(ProblemSpec.GATHER), sweep.columnSharded());
    }

    void writeCsv(Writer writer) throws IOException {
        writer.write(
                "m,k,n,ranks,algorithm,splits,chunks,chunkRows,lanes,predictedUs,sequentialUs,"
                        + "speedup,limitFraction,best,reason\n");
        for (Row row : rows) {
            Price price = row.price();
            boolean done = price != null;
            Sweep.Shape shape = row.shape();
            List<Object> cells =
                    List.of(
                            shape.m(),
                            shape.k(),
                            shape.n(),
                            shape.ranks(),
                            row.algorithm(),
                            row.splits() == 0 ? "" : row.splits(),
                            done ? price.chunksPerSource() : "",
                            done ? price.chunkRows() : "",
                            done ? price.lanes() : "",
                            done ? price.ns() / 1e3 : "",
                            Double.isNaN(row.sequentialNs()) ? "" : row.sequentialNs() / 1e3,
                            Double.isNaN(row.speedup()) ? "" : row.speedup(),
                            done ? price.limitFraction() : "",
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
        json.writeStringField("op", sweep.op());
        json.writeArrayFieldStart("rows");
        for (Row row : rows) {
            writeJson(json, row);
        }
        json.writeEndArray();
    }

    private static void writeJson(JsonGenerator json, Row row) throws IOException {
        json.writeStartObject();
        json.writeNumberField("m", row.shape().m());
        json.writeNumberField("k", row.shape().k());
        json.writeNumberField("n", row.shape().n());
        json.writeNumberField("ranks", row.shape().ranks());
        json.writeStringField("algorithm", row.algorithm());
        if (row.splits() == 0) {
            json.writeNullField("splits");
        } else {
            json.writeNumberField("splits", row.splits());
        }
        Price price = row.price();
        if (price != null) {
            json.writeNumberField("chunks", price.chunksPerSource());
            json.writeNumberField("chunkRows", price.chunkRows());
            json.writeNumberField("lanes", price.lanes());
            json.writeNumberField("predictedUs", price.ns() / 1e3);
            // Null if there is no sequential call to compare with.
            Json.numberOrNull(json, "sequentialUs", row.sequentialNs() / 1e3);
            Json.numberOrNull(json, "speedup", row.speedup());
            json.writeNumberField("limitFraction", price.limitFraction());
            json.writeBooleanField("best", row.best());
            json.writeNullField("reason");
        } else {
            json.writeStringField("reason", row.reason());
        }
        json.writeEndObject();
    }
}
