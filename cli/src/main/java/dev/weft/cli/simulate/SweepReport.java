package dev.weft.cli.simulate;

import static dev.weft.report.Text.text;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.weft.cli.console.Console;
import dev.weft.cli.console.TextTable;
import dev.weft.cli.console.Version;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.simulate.Sweep.Price;
import dev.weft.cli.simulate.Sweep.Row;
import dev.weft.json.RecordJson;
import dev.weft.json.RecordShape;
import dev.weft.report.RecordReader;
import java.io.IOException;
import java.io.Writer;
import java.util.ArrayList;
import java.util.List;

/** A sweep for people, as comma-separated values, and as JSON of docs/sweep-record.md. */
record SweepReport(Sweep sweep, List<Row> rows) {

    void print(Console console) {
        console.info(
                "Simulated on " + sweep.machine().name() + ": " + sweep.machine().description());
        console.info(
                "%s combinations, A %s, B %s; * is the fastest of its problem, chunks are"
                        + " per source",
                rows.size(), sweep.aType().label(), rhs());
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
                done ? Integer.toString(price.chunks()) : "-",
                done ? text("%.3f", price.predictedUs() / 1e3) : "-",
                done && !Double.isNaN(price.speedup()) ? text("%.2fx", price.speedup()) : "-",
                done ? text("%.1f%%", 100 * price.limitFraction()) : "-",
                done ? row.best() ? "*" : "" : row.reason());
    }

    private String rhs() {
        return SimRules.rhs(!sweep.op().equals(ProblemSpec.GATHER), sweep.columnSharded());
    }

    /** Writes the fields of the rows in the record, with their names in the first line. */
    void writeCsv(Writer writer) throws IOException {
        List<String> names = new ArrayList<>();
        addCells(Row.class, null, names, new ArrayList<>());
        writer.write(String.join(",", names) + '\n');
        for (Row row : rows) {
            List<String> cells = new ArrayList<>();
            addCells(Row.class, row, new ArrayList<>(), cells);
            writer.write(String.join(",", cells) + '\n');
        }
    }

    /**
     * @param record null for empty cells
     */
    private static void addCells(
            Class<?> type, Record record, List<String> names, List<String> cells) {
        for (RecordShape.Component component : RecordShape.of(type).components()) {
            Object value = record == null ? null : component.in(record);
            if (component.field().flat()) {
                addCells(component.type(), (Record) value, names, cells);
                continue;
            }
            names.add(component.name());
            boolean none = value == null || Double.valueOf(Double.NaN).equals(value);
            boolean quoted = component.name().equals("reason");
            String text = none ? "" : value.toString();
            cells.add(none || !quoted ? text : '"' + text.replace("\"", "\"\"") + '"');
        }
    }

    /** The record, docs/sweep-record.md. */
    private record SweepJson(
            String schema,
            String weft,
            String machine,
            String aDtype,
            String outDtype,
            String rhs,
            String op,
            List<Row> rows) {}

    void writeJson(JsonGenerator json) throws IOException {
        SweepJson all =
                new SweepJson(
                        RecordReader.SWEEP,
                        Version.number(),
                        sweep.machine().name(),
                        sweep.aType().label(),
                        sweep.outType().label(),
                        rhs(),
                        sweep.op(),
                        rows);
        RecordJson.fields(json, all);
    }
}
