package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Keeps the rows of a GPU bench and prints them as they come: a table per item, times in
 * microseconds as median and, behind a slash, the distance between the quartiles. Used by one
 * thread.
 */
final class GpuTable implements Consumer<BenchRow> {

    private static final String NONE = "-";
    private static final String MISSES = "MISSES";

    /** Gather and product of all inputs. */
    private static final String OVERLAP =
            "cublas 13 time cublas | gated 13 time gated | speed 7 .3 gatedSpeed"
                    + " | gather 13 time gather | limit 8 .1 limitUs"
                    + " | sequential 13 time sequential | pipelined 13 time pipelined"
                    + " | of limit 9 .3 ofLimit | needed 7 .2 needed | ";

    private static final String SHAPE = "M 7 .0 m | K 7 .0 k | N 7 .0 n | ";

    /**
     * By item the columns: head, width, what, and the figure or time that it shows. A figure is
     * shown with so many decimals.
     */
    private static final Map<String, List<Column>> COLUMNS =
            Map.ofEntries(
                    Map.entry(
                            GpuOverlapCase.OVERLAP,
                            columns(
                                    "row 4 .0 row | W 3 .0 ranks | "
                                            + SHAPE
                                            + "out 6 type x | "
                                            + OVERLAP
                                            + "with cublas 13 time pipelinedCublas"
                                            + " | PyTorch: mm 13 time pytorchProduct"
                                            + " | sequential 13 time pytorchSequential"
                                            + " | pipelined 13 time pytorchPipelined"
                                            + " | faster 7 yes fasterThanPytorch")),
                    Map.entry(
                            GpuOverlapCase.FP8,
                            columns(
                                    "W 4 .0 ranks | "
                                            + SHAPE
                                            + "scales 7 scales byBlock | "
                                            + OVERLAP
                                            + "bf16 14 time pipelinedBf16 | over bf16 10 .3 overBf16")),
                    Map.entry(
                            GpuSharedCase.ITEM,
                            columns(
                                    "W 4 .0 ranks | cublas 13 time cublas | W x cublas 12 .1 productsUs"
                                            + " | auto 14 time auto | over 7 .3 autoOverProducts"
                                            + " | needed 7 .1 needed | mesh-pull 14 time meshPull"
                                            + " | over 7 .3 meshPullOverProducts | ring 14 time ring"
                                            + " | over 7 .3 ringOverProducts"
                                            + " | PyTorch fused 15 time pytorchFused")),
                    Map.entry(
                            GpuCallsCase.GATHER.item(),
                            columns(
                                    "calls 6 .0 calls | right 6 .0 passed | per call 13 time call")),
                    Map.entry(
                            GpuQueueCase.ITEM,
                            columns(
                                    "N 7 .0 n | awaited 14 time awaited | queued 14 time queued"
                                            + " | gain 7 .3 gain")),
                    Map.entry(
                            GpuRowsCase.ITEM,
                            columns(
                                    "rows 6 .0 rows | exact 14 time exact | prepared 14 time prepared"
                                            + " | speed 7 .3 speed | needed 7 .2 needed"
                                            + " | changed 14 time changed | speed 7 .3 changedSpeed")),
                    Map.entry(
                            GpuHostCase.ITEM,
                            columns(
                                    "queued 14 time queued | A copied 14 time copied"
                                            + " | replayed 14 time replayed | gain 7 .2 gain")),
                    Map.entry(
                            GpuBlocksCase.ITEM,
                            columns(
                                    "cublas bf16 14 time cublas | blocks 14 time blocks | speed 7 .3 speed"
                                            + " | of memory 10 .3 ofMemory | Marlin 8 .1 marlinUs")),
                    Map.entry(
                            GpuHelionCase.ITEM,
                            columns(
                                    "W 4 .0 ranks | operator 14 time operator | helion 14 time helion"
                                            + " | speed 7 .3 speed | needed 7 .2 needed"
                                            + " | as example 14 time example | speed 7 .3 exampleSpeed")),
                    Map.entry(
                            GpuSumsCase.ITEM,
                            columns(
                                    "W 4 .0 ranks | "
                                            + SHAPE
                                            + "product 14 time product | in 14 time in | out 14 time out"
                                            + " | in and out 14 time moves | pipelined 14 time pipelined"
                                            + " | of limit 9 .3 ofLimit | needed 7 .2 needed"
                                            + " | of both 8 .3 ofBothWays")),
                    Map.entry(
                            GpuNormCase.ITEM,
                            columns(
                                    "W 4 .0 ranks | M 7 .0 m | fused 14 time fused"
                                            + " | PyTorch 14 time pytorchUnfused | speed 7 .3 speed")),
                    Map.entry(
                            GpuSharedSumsCase.ITEM,
                            columns(
                                    "W 4 .0 ranks | W products 14 time products | copies 14 time copies"
                                            + " | reduce-scatter 16 time scatter"
                                            + " | over 7 .3 scatterOverProducts"
                                            + " | all-reduce 16 time all | over 7 .3 allOverProducts"
                                            + " | over both 10 .3 allOverBound | needed 7 .1 needed")));

    /** One column as {@link #COLUMNS} describe it. */
    private record Column(String head, int width, String what, String name) {

        private static final Pattern FORM = Pattern.compile("(.+) (\\d+) (\\S+) (\\S+)");

        static Column of(String text) {
            Matcher column = FORM.matcher(text.strip());
            if (!column.matches()) {
                throw new IllegalArgumentException("no column: '" + text + "'");
            }
            int width = Integer.parseInt(column.group(2));
            return new Column(column.group(1), width, column.group(3), column.group(4));
        }

        /** Whether it compares times, which needs more rounds than showing them. */
        boolean compares() {
            return what.equals("yes") || what.matches("\\.[1-9]") && !name.endsWith("Us");
        }

        String text(BenchRow row) {
            Double value = row.figures().get(what.equals("time") ? name + "Us" : name);
            if (what.equals("type")) {
                return row.name().substring(row.name().lastIndexOf(' ') + 1);
            }
            if (value == null) {
                return NONE;
            }
            return switch (what) {
                case "time" ->
                        GpuTable.text("%.1f/%.1f", value, row.figures().get(name + "SpreadUs"));
                case "yes" -> value == 1 ? "yes" : "NO";
                case "scales" -> value == 1 ? "block" : "row";
                default -> GpuTable.text("%" + what + "f", value);
            };
        }

        String cell(String content) {
            return " ".repeat(Math.max(1, width - content.length())) + content;
        }
    }

    private static final int VERDICT_WIDTH = 8;

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

    private static List<Column> columns(String texts) {
        return Arrays.stream(texts.split("\\|")).map(Column::of).toList();
    }

    List<BenchRow> rows() {
        return rows;
    }

    @Override
    public void accept(BenchRow row) {
        if (rows.isEmpty() || !rows.getLast().item().equals(row.item())) {
            out.accept("");
            out.accept(row.item());
            out.accept(line(row.item(), Column::head, "verdict"));
        }
        rows.add(row);
        // Without figures there is nothing to align, and the name says what it was.
        out.accept(
                row.figures().isEmpty()
                        ? "     " + row.name() + ": " + verdict(row)
                        : line(row.item(), column -> text(column, row), verdict(row)));
        row.checks().stream()
                .filter(check -> !check.passed())
                .forEach(
                        check ->
                                out.accept("     FAILED: " + check.what() + ": " + check.detail()));
        if (!quick) {
            row.misses().forEach(miss -> out.accept("     misses: " + miss));
        }
    }

    private String text(Column column, BenchRow row) {
        return quick && column.compares() ? NONE : column.text(row);
    }

    private static String line(String item, Function<Column, String> content, String verdict) {
        String cells =
                COLUMNS.get(item).stream()
                        .map(column -> column.cell(content.apply(column)))
                        .collect(Collectors.joining());
        return cells + " ".repeat(Math.max(1, VERDICT_WIDTH - verdict.length())) + verdict;
    }

    private String verdict(BenchRow row) {
        if (!row.verified()) {
            return "FAILED";
        }
        return quick || row.misses().isEmpty() ? "ok" : MISSES;
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

    private static String text(String form, Object... values) {
        return String.format(Locale.ROOT, form, values);
    }
}
