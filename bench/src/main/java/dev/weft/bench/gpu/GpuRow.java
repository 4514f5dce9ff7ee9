package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Figures;
import dev.weft.bench.measure.Interleaved;
import dev.weft.report.Samples;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * A row in the making: figures first, then medians and spreads of the times. Used by one thread.
 */
final class GpuRow {

    private final String item;
    private final String name;
    private final String peer;
    private final Map<String, Samples> times;
    private final Figures figures = new Figures();
    private final List<String> misses = new ArrayList<>();

    GpuRow(String item, String name, String peer, Map<String, Samples> times) {
        this.item = item;
        this.name = name;
        this.peer = peer;
        this.times = times;
    }

    /** Measures and verifies one row. */
    @FunctionalInterface
    interface Measured {
        BenchRow row() throws IOException, InterruptedException;
    }

    /** A row that could not be measured is a row that is wrong; the others go on. */
    static BenchRow attempt(String item, String name, Measured measured)
            throws IOException, InterruptedException {
        try {
            return measured.row();
        } catch (RuntimeException e) {
            String text = e.getMessage() == null ? e.toString() : e.getMessage();
            String why = text.lines().findFirst().orElse(e.toString());
            BenchRow.Check failed = new BenchRow.Check("run", false, why);
            return new BenchRow(
                    item, name, "none", Double.NaN, Map.of(), List.of(failed), List.of());
        }
    }

    /** What every one of some things took that take turns. */
    static Map<String, Samples> take(Map<String, Interleaved.Turn> turns, int warmup, int rounds)
            throws IOException, InterruptedException {
        long[][] ns = Interleaved.take(List.copyOf(turns.values()), warmup, rounds).ns();
        Map<String, Samples> times = new LinkedHashMap<>();
        for (String name : turns.keySet()) {
            times.put(name, Samples.ofNs(ns[times.size()]));
        }
        return times;
    }

    /** The median of one of the times. */
    double us(String time) {
        return times.get(time).median();
    }

    /**
     * @param namesAndValues a name, its value and so on
     */
    GpuRow put(Object... namesAndValues) {
        for (int i = 0; i < namesAndValues.length; i += 2) {
            figures.with((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return this;
    }

    GpuRow needs(String who, double reached, String of, double needed) {
        // Not "reached < needed": what is no number has not reached anything.
        return needs(reached >= needed, "%s at %.3f of %s, needed %.2f", who, reached, of, needed);
    }

    /**
     * @param form and values: what to say of a row that misses it
     */
    GpuRow needs(boolean reached, String form, Object... values) {
        if (!reached) {
            misses.add(String.format(Locale.ROOT, form, values));
        }
        return this;
    }

    BenchRow row(double ratio, List<BenchRow.Check> checks) {
        Map<String, Double> all = new LinkedHashMap<>(figures);
        times.forEach(
                (time, samples) -> {
                    all.put(time + "Us", samples.median());
                    all.put(time + "SpreadUs", samples.spread());
                });
        return new BenchRow(item, name, peer, ratio, all, checks, misses);
    }
}
