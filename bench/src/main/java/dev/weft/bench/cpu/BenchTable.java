package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRecord;
import dev.weft.bench.measure.BenchRow;
import dev.weft.tune.Quantiles;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/**
 * Keeps what the cases find, and prints it as it comes: a table with columns of fixed width, since
 * later rows are not known yet. Used by one thread.
 */
final class BenchTable implements BenchCase.Sink {

    private static final String FORM = "%-8s %-70s %-42s %8s  %s";

    private static final String PASS = "pass";

    /** Figures that are worth a look at once, by name, with their words. */
    private static final Map<String, String> KEY_FIGURES = keyFigures();

    /** Rows with fewer key figures than this show others, up to so many in all. */
    private static final int FIGURES = 4;

    private final Consumer<String> out;
    private final boolean quick;
    private final List<BenchRow> rows = new ArrayList<>();
    private final List<BenchRecord.Skipped> skipped = new ArrayList<>();
    private final Map<String, Double> figures = new LinkedHashMap<>();

    /**
     * @param quick whether problems are too small, and rounds too few, for a verdict: times are
     *     shown, and nothing that compares them
     * @param out takes lines
     */
    BenchTable(boolean quick, Consumer<String> out) {
        this.quick = quick;
        this.out = out;
    }

    private static Map<String, String> keyFigures() {
        Map<String, String> words = new LinkedHashMap<>();
        words.put("weftMedianNs", "weft");
        words.put("peerMedianNs", "peer");
        words.put("weftGflops", "weft GFLOP/s");
        words.put("peakFraction", "of peak");
        words.put("readFraction", "of read rate");
        words.put("gatherOverProduct", "gather/product");
        words.put("reduceOverProduct", "reduce/product");
        words.put("hidden", "hidden");
        words.put("productRatio", "product ratio");
        words.put("needed", "needed");
        words.put("pipelinedNs", "pipelined");
        words.put("limit", "limit");
        words.put("copyLimit", "copy limit");
        words.put(PASS, "pass");
        return words;
    }

    List<BenchRow> rows() {
        return rows;
    }

    List<BenchRecord.Skipped> skipped() {
        return skipped;
    }

    Map<String, Double> figures() {
        return figures;
    }

    void head() {
        out.accept(text(FORM, "item", "case", "peer", "ratio", "figures"));
    }

    @Override
    public void row(BenchRow row) {
        rows.add(row);
        out.accept(
                text(
                        FORM,
                        row.item(),
                        row.name(),
                        row.peer(),
                        quick ? "-" : text("%.3f", row.ratio()),
                        figures(row.figures())));
    }

    @Override
    public void skipped(String item, String reason) {
        String firstLine = reason.lines().findFirst().orElse("no reason given");
        skipped.add(new BenchRecord.Skipped(item, firstLine));
        out.accept(text("%-8s skipped: %s", item, firstLine));
    }

    @Override
    public void machine(String name, double value) {
        figures.put(name, value);
    }

    private String figures(Map<String, Double> figures) {
        List<String> words = new ArrayList<>();
        KEY_FIGURES.forEach(
                (name, word) -> {
                    if (figures.containsKey(name) && isShown(name)) {
                        words.add(word + " " + figure(name, figures.get(name)));
                    }
                });
        if (words.size() < FIGURES) {
            figures.entrySet().stream()
                    .filter(f -> !KEY_FIGURES.containsKey(f.getKey()))
                    .filter(f -> !f.getKey().endsWith("SpreadNs") && isShown(f.getKey()))
                    .limit(FIGURES - words.size())
                    .forEach(f -> words.add(word(f.getKey()) + figure(f.getKey(), f.getValue())));
        }
        return String.join(", ", words);
    }

    /** With few rounds only times are. */
    private boolean isShown(String name) {
        return !quick || name.endsWith("Ns");
    }

    /** Its value says the unit. */
    private static String word(String name) {
        return (name.endsWith("Ns") ? name.substring(0, name.length() - 2) : name) + " ";
    }

    private static String figure(String name, double value) {
        if (name.equals(PASS)) {
            return value == 1 ? "yes" : "NO";
        }
        if (value == Math.rint(value) && !name.endsWith("Ns")) {
            return text("%.0f", value);
        }
        return name.endsWith("Ns") ? text("%.3f ms", value / 1e6) : text("%.4g", value);
    }

    /** By item and peer: how many rows, and between what their ratios lie. */
    void summary() {
        Map<String, List<BenchRow>> groups =
                rows.stream()
                        .collect(
                                Collectors.groupingBy(
                                        row -> row.item() + ", compared with " + row.peer(),
                                        LinkedHashMap::new,
                                        Collectors.toList()));
        out.accept("");
        out.accept(
                quick
                        ? "--quick shows that it works, not how fast: no ratios, as there are too"
                                + " few rounds."
                        : "Ratio: speed of Weft over that of the peer, above 1 Weft is faster.");
        groups.forEach((name, group) -> out.accept(summary(name, group)));
        if (!skipped.isEmpty()) {
            out.accept("Skipped, with the reasons above: " + skipped.size());
        }
    }

    private String summary(String name, List<BenchRow> group) {
        double[] ratios = group.stream().mapToDouble(BenchRow::ratio).toArray();
        String count = text("%s: %d %s", name, ratios.length, ratios.length == 1 ? "row" : "rows");
        if (quick) {
            return count;
        }
        String line =
                text(
                        "%s, ratio %.3f to %.3f, median %.3f",
                        count,
                        Quantiles.quantile(ratios, 0),
                        Quantiles.quantile(ratios, 1),
                        Quantiles.median(ratios));
        long judged = group.stream().filter(row -> row.figures().containsKey(PASS)).count();
        long passed =
                group.stream().filter(row -> row.figures().getOrDefault(PASS, 0.0) == 1).count();
        return judged == 0 ? line : line + text(", %d of %d pass", passed, judged);
    }

    private static String text(String form, Object... values) {
        return String.format(Locale.ROOT, form, values);
    }
}
