package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * Keeps the rows of a GPU bench and prints them as they come: a table per item, times in
 * microseconds as median and, behind a slash, the distance between the quartiles. Used by one
 * thread.
 */
final class GpuTable implements Consumer<BenchRow> {

    private static final String NONE = "-";

    private static final String MISSES = "MISSES";

    /**
     * @param compares whether it compares times, which needs more rounds than showing them
     */
    private record Column(
            String head, int width, Function<BenchRow, String> text, boolean compares) {

        Column(String head, int width, Function<BenchRow, String> text) {
            this(head, width, text, false);
        }

        String cell(String content) {
            return " ".repeat(Math.max(1, width - content.length())) + content;
        }
    }

    private static final List<Column> OVERLAP =
            List.of(
                    figure("row", 4, "row", "%.0f"),
                    figure("W", 3, "ranks", "%.0f"),
                    figure("M", 7, "m", "%.0f"),
                    figure("K", 7, "k", "%.0f"),
                    figure("N", 7, "n", "%.0f"),
                    new Column("out", 6, GpuTable::outType),
                    time("cublas", 13, GpuOverlapSides.CUBLAS),
                    time("gated", 13, GpuOverlapSides.GATED),
                    figure("speed", 7, "gatedSpeed", "%.3f"),
                    time("gather", 13, GpuOverlapSides.GATHER),
                    figure("limit", 8, "limitUs", "%.1f"),
                    time("sequential", 13, GpuOverlapSides.SEQUENTIAL),
                    time("pipelined", 13, GpuOverlapSides.PIPELINED),
                    figure("of limit", 9, "ofLimit", "%.3f"),
                    figure("needed", 7, "needed", "%.2f"),
                    time("with cublas", 13, GpuOverlapSides.PIPELINED_CUBLAS),
                    time("PyTorch: mm", 13, GpuPytorch.PRODUCT),
                    time("sequential", 13, GpuPytorch.SEQUENTIAL),
                    time("pipelined", 13, GpuPytorch.PIPELINED),
                    new Column("faster", 7, GpuTable::faster, true),
                    new Column("verdict", 8, GpuTable::verdict));

    private static final List<Column> FP8 =
            List.of(
                    figure("W", 4, "ranks", "%.0f"),
                    figure("M", 7, "m", "%.0f"),
                    figure("K", 7, "k", "%.0f"),
                    figure("N", 7, "n", "%.0f"),
                    new Column("scales", 7, GpuTable::scales),
                    time("cublas", 13, GpuOverlapSides.CUBLAS),
                    time("gated", 13, GpuOverlapSides.GATED),
                    figure("speed", 7, "gatedSpeed", "%.3f"),
                    time("gather", 13, GpuOverlapSides.GATHER),
                    figure("limit", 8, "limitUs", "%.1f"),
                    time("sequential", 13, GpuOverlapSides.SEQUENTIAL),
                    time("pipelined", 13, GpuOverlapSides.PIPELINED),
                    figure("of limit", 9, "ofLimit", "%.3f"),
                    figure("needed", 7, "needed", "%.2f"),
                    time("bf16", 14, GpuFp8Sides.BF16),
                    figure("over bf16", 10, "overBf16", "%.3f"),
                    new Column("verdict", 8, GpuTable::verdict));

    private static final List<Column> SHARED =
            List.of(
                    figure("W", 4, "ranks", "%.0f"),
                    time("cublas", 13, GpuSharedRanks.CUBLAS),
                    figure("W x cublas", 12, "productsUs", "%.1f"),
                    time("auto", 14, "auto"),
                    figure("over", 7, "autoOverProducts", "%.3f"),
                    figure("needed", 7, "needed", "%.1f"),
                    time("mesh-pull", 14, "meshPull"),
                    figure("over", 7, "meshPullOverProducts", "%.3f"),
                    time("ring", 14, "ring"),
                    figure("over", 7, "ringOverProducts", "%.3f"),
                    time("PyTorch fused", 15, GpuPytorch.FUSED),
                    new Column("verdict", 8, GpuTable::verdict));

    private static final List<Column> CALLS =
            List.of(
                    figure("calls", 6, "calls", "%.0f"),
                    figure("right", 6, "passed", "%.0f"),
                    time("per call", 13, "call"),
                    new Column("verdict", 8, GpuTable::verdict));

    private static final List<Column> QUEUE =
            List.of(
                    figure("N", 7, "n", "%.0f"),
                    time("awaited", 14, GpuQueueCase.AWAITED),
                    time("queued", 14, GpuQueueCase.QUEUED),
                    figure("gain", 7, "gain", "%.3f"),
                    new Column("verdict", 8, GpuTable::verdict));

    private static final List<Column> HELION =
            List.of(
                    figure("W", 4, "ranks", "%.0f"),
                    time("operator", 14, GpuHelionCase.OPERATOR),
                    time("helion", 14, GpuHelionCase.HELION),
                    figure("speed", 7, "speed", "%.3f"),
                    figure("needed", 7, "needed", "%.2f"),
                    time("as example", 14, GpuHelionCase.EXAMPLE),
                    figure("speed", 7, "exampleSpeed", "%.3f"),
                    new Column("verdict", 8, GpuTable::verdict));

    private static final List<Column> SUMS =
            List.of(
                    figure("W", 4, "ranks", "%.0f"),
                    figure("M", 7, "m", "%.0f"),
                    figure("K", 7, "k", "%.0f"),
                    figure("N", 7, "n", "%.0f"),
                    time("product", 14, GpuSumsCase.PRODUCT),
                    time("in", 14, GpuSumsCase.IN),
                    time("out", 14, GpuSumsCase.OUT),
                    time("in and out", 14, GpuSumsCase.MOVES),
                    time("pipelined", 14, GpuSumsCase.PIPELINED),
                    figure("of limit", 9, "ofLimit", "%.3f"),
                    figure("needed", 7, "needed", "%.2f"),
                    figure("of both", 8, "ofBothWays", "%.3f"),
                    new Column("verdict", 8, GpuTable::verdict));

    private static final List<Column> SHARED_SUMS =
            List.of(
                    figure("W", 4, "ranks", "%.0f"),
                    time("W products", 14, GpuSharedSumsCase.PRODUCTS),
                    time("copies", 14, GpuSharedSumsCase.COPIES),
                    time("reduce-scatter", 16, GpuSharedSumsCase.SCATTER),
                    figure("over", 7, "scatterOverProducts", "%.3f"),
                    time("all-reduce", 16, GpuSharedSumsCase.ALL),
                    figure("over", 7, "allOverProducts", "%.3f"),
                    figure("over both", 10, "allOverBound", "%.3f"),
                    figure("needed", 7, "needed", "%.1f"),
                    new Column("verdict", 8, GpuTable::verdict));

    private static final Map<String, List<Column>> COLUMNS =
            Map.of(
                    GpuOverlapRow.ITEM, OVERLAP,
                    GpuFp8Case.ITEM, FP8,
                    GpuSharedCase.ITEM, SHARED,
                    GpuCallsCase.ITEM, CALLS,
                    GpuQueueCase.ITEM, QUEUE,
                    GpuHelionCase.ITEM, HELION,
                    GpuSumsCase.ITEM, SUMS,
                    GpuSharedSumsCase.ITEM, SHARED_SUMS);

    private final boolean quick;
    private final Consumer<String> out;
    private final List<BenchRow> rows = new ArrayList<>();

    /**
     * @param quick whether there are too few rounds to compare anything: only times are shown
     * @param out takes lines
     */
    GpuTable(boolean quick, Consumer<String> out) {
        this.quick = quick;
        this.out = out;
    }

    List<BenchRow> rows() {
        return rows;
    }

    @Override
    public void accept(BenchRow row) {
        List<Column> columns = COLUMNS.get(row.item());
        if (rows.isEmpty() || !rows.getLast().item().equals(row.item())) {
            out.accept("");
            out.accept(row.item());
            out.accept(line(columns, Column::head));
        }
        rows.add(row);
        // Without figures there is nothing to align, and the name says what it was.
        out.accept(
                row.figures().isEmpty()
                        ? "     " + row.name() + ": " + verdict(row)
                        : line(columns, column -> cell(column, row)));
        row.checks().stream()
                .filter(check -> !check.passed())
                .forEach(
                        check ->
                                out.accept("     FAILED: " + check.what() + ": " + check.detail()));
        if (!quick) {
            row.misses().forEach(miss -> out.accept("     misses: " + miss));
        }
    }

    private String cell(Column column, BenchRow row) {
        String text = quick && column.compares ? NONE : column.text.apply(row);
        return quick && text.equals(MISSES) ? "ok" : text;
    }

    /**
     * By item: how many rows there are, how many are right, and how many reach what they should.
     */
    void summary() {
        out.accept("");
        if (quick) {
            out.accept(
                    "--quick shows that it works, not how fast: no ratios, as there are too few rounds.");
        }
        rows.stream()
                .collect(
                        Collectors.groupingBy(
                                BenchRow::item, LinkedHashMap::new, Collectors.toList()))
                .forEach((item, group) -> out.accept(summary(item, group)));
    }

    private String summary(String item, List<BenchRow> group) {
        long verified = group.stream().filter(BenchRow::verified).count();
        long passed = group.stream().filter(BenchRow::pass).count();
        String right = text("%s: %d of %d rows verified", item, verified, group.size());
        return quick ? right : right + text(", %d reach all that they should", passed);
    }

    private static String line(List<Column> columns, Function<Column, String> content) {
        return columns.stream()
                .map(column -> column.cell(content.apply(column)))
                .collect(Collectors.joining());
    }

    private static Column figure(String head, int width, String name, String form) {
        return new Column(
                head,
                width,
                row -> row.figures().containsKey(name) ? text(form, row.figures().get(name)) : NONE,
                !form.equals("%.0f") && !name.endsWith("Us"));
    }

    private static Column time(String head, int width, String name) {
        return new Column(
                head,
                width,
                row -> {
                    Double median = row.figures().get(name + "Us");
                    Double spread = row.figures().get(name + "SpreadUs");
                    return median == null ? NONE : text("%.1f/%.1f", median, spread);
                });
    }

    private static String outType(BenchRow row) {
        return row.name().substring(row.name().lastIndexOf(' ') + 1);
    }

    private static String scales(BenchRow row) {
        return row.figures().get("byBlock") == 1 ? "block" : "row";
    }

    private static String faster(BenchRow row) {
        Double faster = row.figures().get("fasterThanPytorch");
        return faster == null ? NONE : faster == 1 ? "yes" : "NO";
    }

    private static String verdict(BenchRow row) {
        return !row.verified() ? "FAILED" : row.misses().isEmpty() ? "ok" : MISSES;
    }

    private static String text(String form, Object... values) {
        return String.format(Locale.ROOT, form, values);
    }
}
