package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.report.Samples;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * One of the GPU bench's questions. Runs alone on the GPU, on the command's thread.
 *
 * @param item the word for it in the option {@code --only} and in {@link BenchRow#item}
 */
record GpuCase(String item, Rows rows) {

    /** Measures, verifies and hands over rows one by one. */
    @FunctionalInterface
    interface Rows {
        void run(GpuBench bench, Consumer<BenchRow> sink) throws IOException, InterruptedException;
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
            return new BenchRow(
                    item,
                    name,
                    "none",
                    Double.NaN,
                    Map.of(),
                    List.of(new BenchRow.Check("run", false, why)),
                    List.of());
        }
    }

    /** The figures, and behind them the times' medians and spreads. */
    static Map<String, Double> figures(Map<String, Double> figures, Map<String, Samples> times) {
        Map<String, Double> all = new LinkedHashMap<>(figures);
        times.forEach(
                (name, samples) -> {
                    all.put(name + "Us", samples.median());
                    all.put(name + "SpreadUs", samples.spread());
                });
        return all;
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
}
