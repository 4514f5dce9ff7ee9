package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;

/**
 * A row of the bench's overlap table: rows of A on so many ranks, times B of K x N. Pure.
 *
 * @param number of the row, from 1
 * @param type of A and B
 */
record GpuOverlapRow(int number, DType type, Shards shards, long k, long n) {

    static final String ITEM = "overlap";

    private static final long LARGE_ROWS = 4096;

    /** All rows, in the order of their numbers: even shards, uneven ones, few rows. */
    static final List<GpuOverlapRow> ROWS =
            List.of(
                    even(1, 2, 2048, 2048, 1024),
                    even(2, 2, 4096, 4096, 4096),
                    even(3, 2, 8192, 4096, 4096),
                    even(4, 4, 8192, 4096, 4096),
                    even(5, 8, 8192, 4096, 4096),
                    even(6, 8, 16384, 4096, 4096),
                    even(7, 8, 4096, 16384, 6656),
                    even(8, 8, 8192, 4096, 14336),
                    even(9, 4, 8192, 8192, 28672),
                    new GpuOverlapRow(10, DType.BF16, Shards.of(3000, 0, 4191, 1001), 4096, 4096),
                    even(11, 4, 4, 4096, 14336),
                    even(12, 4, 32, 4096, 14336),
                    even(13, 4, 128, 4096, 14336));

    private static GpuOverlapRow even(int number, int ranks, long m, long k, long n) {
        return new GpuOverlapRow(number, DType.FP16, Shards.even(m, ranks), k, n);
    }

    long m() {
        return shards.totalRows();
    }

    static GpuOverlapRow of(int number) {
        return ROWS.get(number - 1);
    }

    String name(DType out) {
        return "row %d: %s, %s to %s".formatted(number, this, type.label(), out.label());
    }

    /**
     * A row from what was measured for it.
     *
     * @param times PyTorch's among them, if it has taken turns
     * @param counts figures that are only recorded
     */
    BenchRow measured(
            DType out,
            Map<String, Samples> times,
            Map<String, Double> counts,
            List<BenchRow.Check> checks) {
        double cublas = times.get(GpuOverlapSides.CUBLAS).median();
        double pipelined = times.get(GpuOverlapSides.PIPELINED).median();
        double gatedSpeed = cublas / times.get(GpuOverlapSides.GATED).median();
        double limit = Math.max(cublas, times.get(GpuOverlapSides.GATHER).median());
        double ofLimit = limit / pipelined;
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("row", (double) number);
        figures.put("ranks", (double) shards.ranks());
        figures.put("m", (double) m());
        figures.put("k", (double) k);
        figures.put("n", (double) n);
        figures.put("outBytes", (double) out.bytes());
        figures.put("gatedSpeed", gatedSpeed);
        figures.put("gatedNeeded", gatedNeeded(m()));
        figures.put("limitUs", limit);
        figures.put("ofLimit", ofLimit);
        figures.put("needed", pipelinedNeeded(limit));
        figures.putAll(new TreeMap<>(counts));
        List<String> misses = new ArrayList<>();
        below(misses, "gated", gatedSpeed, "cuBLAS's speed", gatedNeeded(m()));
        below(misses, "pipelined", ofLimit, "the limit", pipelinedNeeded(limit));
        if (times.containsKey(GpuPytorch.PIPELINED)) {
            double best =
                    Math.min(
                            times.get(GpuPytorch.SEQUENTIAL).median(),
                            times.get(GpuPytorch.PIPELINED).median());
            boolean faster = pipelined < best;
            figures.put("fasterThanPytorch", faster ? 1.0 : 0.0);
            if (!faster) {
                misses.add(
                        String.format(
                                Locale.ROOT,
                                "pipelined is not faster than PyTorch's %.0f us",
                                best));
            }
        }
        return new BenchRow(
                ITEM, name(out), "limit", ofLimit, GpuCase.figures(figures, times), checks, misses);
    }

    /** The gated kernel's speed over cuBLAS's, at least. */
    static double gatedNeeded(long m) {
        return m >= LARGE_ROWS ? 0.97 : 0.93;
    }

    /** The part of the limit that a pipelined call reaches at least: short calls pay for starts. */
    static double pipelinedNeeded(double limitUs) {
        if (limitUs > 900) {
            return 0.97;
        }
        if (limitUs > 500) {
            return 0.95;
        }
        return limitUs > 200 ? 0.90 : 0.75;
    }

    static void below(List<String> misses, String who, double reached, String of, double needed) {
        // Not "reached < needed": what is no number has not reached anything.
        if (!(reached >= needed)) {
            misses.add(
                    String.format(
                            Locale.ROOT,
                            "%s at %.3f of %s, needed %.2f",
                            who,
                            reached,
                            of,
                            needed));
        }
    }

    @Override
    public String toString() {
        List<Long> rows =
                IntStream.range(0, shards.ranks()).mapToObj(shards::rows).distinct().toList();
        String uneven = rows.size() > 1 ? " uneven" : "";
        return "W %d, M %d%s K %d N %d".formatted(shards.ranks(), m(), uneven, k, n);
    }
}
