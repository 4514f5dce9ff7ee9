package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * A row of the bench's overlap table: M x K rows of A on so many ranks, times B of K x N. Pure.
 *
 * @param number of the row, from 1
 * @param pytorchSequentialUs what PyTorch took on an H200 with peers on the host, fp16 in and out:
 *     gather, then product
 * @param pytorchPipelinedUs the best of its pipelined ways, measured likewise
 */
record GpuOverlapRow(
        int number,
        int ranks,
        long m,
        long k,
        long n,
        double pytorchSequentialUs,
        double pytorchPipelinedUs) {

    static final String ITEM = "overlap";

    private static final long LARGE_ROWS = 4096;

    /** All rows, in the order of their numbers. */
    static final List<GpuOverlapRow> ROWS =
            List.of(
                    new GpuOverlapRow(1, 2, 2048, 2048, 1024, 114, 144),
                    new GpuOverlapRow(2, 2, 4096, 4096, 4096, 513, 398),
                    new GpuOverlapRow(3, 2, 8192, 4096, 4096, 979, 704),
                    new GpuOverlapRow(4, 4, 8192, 4096, 4096, 1287, 1005),
                    new GpuOverlapRow(5, 8, 8192, 4096, 4096, 1463, 1154),
                    new GpuOverlapRow(6, 8, 16384, 4096, 4096, 2910, 2274),
                    new GpuOverlapRow(7, 8, 4096, 16384, 6656, 3319, 2294),
                    new GpuOverlapRow(8, 8, 8192, 4096, 14336, 2390, 1713),
                    new GpuOverlapRow(9, 4, 8192, 8192, 28672, 6870, 5929));

    static GpuOverlapRow of(int number) {
        return ROWS.get(number - 1);
    }

    String name(DType out) {
        return "row " + number + ": " + this + ", fp16 to " + out.label();
    }

    /**
     * A row from what was measured for it.
     *
     * @param counts figures that are only recorded
     * @param pytorchsCard whether PyTorch's times were measured on such a card
     */
    BenchRow measured(
            DType out,
            Map<String, Samples> times,
            Map<String, Double> counts,
            List<BenchRow.Check> checks,
            boolean pytorchsCard) {
        double cublas = times.get(GpuOverlapSides.CUBLAS).median();
        double pipelined = times.get(GpuOverlapSides.PIPELINED).median();
        double gatedSpeed = cublas / times.get(GpuOverlapSides.GATED).median();
        double limit = Math.max(cublas, times.get(GpuOverlapSides.GATHER).median());
        double ofLimit = limit / pipelined;
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("row", (double) number);
        figures.put("ranks", (double) ranks);
        figures.put("m", (double) m);
        figures.put("k", (double) k);
        figures.put("n", (double) n);
        figures.put("outBytes", (double) out.bytes());
        figures.put("gatedSpeed", gatedSpeed);
        figures.put("gatedNeeded", gatedNeeded(m));
        figures.put("limitUs", limit);
        figures.put("ofLimit", ofLimit);
        figures.put("needed", pipelinedNeeded(limit));
        figures.putAll(new TreeMap<>(counts));
        List<String> misses = new ArrayList<>();
        below(misses, "gated", gatedSpeed, "cuBLAS's speed", gatedNeeded(m));
        below(misses, "pipelined", ofLimit, "the limit", pipelinedNeeded(limit));
        // PyTorch wrote fp16, so only that is compared.
        if (pytorchsCard && out == DType.FP16) {
            boolean faster = pipelined < pytorchBestUs();
            figures.put("pytorchSequentialUs", pytorchSequentialUs);
            figures.put("pytorchPipelinedUs", pytorchPipelinedUs);
            figures.put("fasterThanPytorch", faster ? 1.0 : 0.0);
            if (!faster) {
                misses.add(
                        String.format(
                                Locale.ROOT,
                                "pipelined is not faster than PyTorch's %.0f us",
                                pytorchBestUs()));
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

    private static void below(
            List<String> misses, String who, double reached, String of, double needed) {
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

    private double pytorchBestUs() {
        return Math.min(pytorchSequentialUs, pytorchPipelinedUs);
    }

    @Override
    public String toString() {
        return "W " + ranks + ", M " + m + " K " + k + " N " + n;
    }
}
