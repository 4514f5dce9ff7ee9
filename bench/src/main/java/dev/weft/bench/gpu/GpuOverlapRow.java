package dev.weft.bench.gpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.plan.Shards;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.util.List;
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

    private static final long LARGE_ROWS = 4096;

    /** Calls that are so short that they belong in graphs. */
    private static final long FEW_ROWS = 128;

    private static final double FP8_GATED_NEEDED = 0.97;
    private static final double OVER_BF16_BY_LINK = 1.7;
    private static final double OVER_BF16_BY_PRODUCT = 1.6;

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
                    even(13, 4, 128, 4096, 14336),
                    new GpuOverlapRow(14, DType.FP16, Shards.of(0, 1), 4096, 14336),
                    new GpuOverlapRow(15, DType.FP16, Shards.of(0, 1), 4096, 1792),
                    even(16, 4, 4, 4096, 1792),
                    even(17, 4, 32, 4096, 1792),
                    even(18, 4, 128, 4096, 1792));

    private static GpuOverlapRow even(int number, int ranks, long m, long k, long n) {
        return new GpuOverlapRow(number, DType.FP16, Shards.even(m, ranks), k, n);
    }

    long m() {
        return shards.totalRows();
    }

    boolean hasFewRows() {
        return m() <= FEW_ROWS;
    }

    static GpuOverlapRow of(int number) {
        return ROWS.get(number - 1);
    }

    String name(DType out) {
        return "row %d: %s, %s to %s".formatted(number, this, type.label(), out.label());
    }

    String name(Scaling scaling) {
        return this + ", e4m3 with scales by " + scaling.label() + " to bf16";
    }

    /**
     * A row of the item {@code overlap} from what was measured for it.
     *
     * @param times PyTorch's among them, if it has taken turns
     * @param counts figures that are only recorded
     */
    BenchRow measured(
            DType out,
            Map<String, Samples> times,
            Map<String, Double> counts,
            List<BenchRow.Check> checks) {
        GpuRow row = new GpuRow(GpuOverlapCase.OVERLAP, name(out), "limit", times);
        row.put("row", number).put(shape()).put("outBytes", out.bytes());
        double ofLimit = limit(row, "cuBLAS's", gatedNeeded(m()));
        new TreeMap<>(counts).forEach(row::put);
        if (times.containsKey(GpuPytorch.PIPELINED)) {
            double best = Math.min(row.us(GpuPytorch.SEQUENTIAL), row.us(GpuPytorch.PIPELINED));
            boolean faster = row.us(GpuSides.PIPELINED) < best;
            row.put("fasterThanPytorch", faster)
                    .needs(faster, "pipelined is not faster than PyTorch's %.0f us", best);
        }
        if (times.containsKey(GpuPytorch.GRAPH)) {
            boolean faster = row.us(GpuSides.GRAPH) < row.us(GpuPytorch.GRAPH);
            row.put("fasterInGraphs", faster)
                    .needs(
                            faster,
                            "a launch of a graph is not faster than PyTorch's %.0f us",
                            row.us(GpuPytorch.GRAPH));
        }
        return row.row(ofLimit, checks);
    }

    /** A row of the item {@code fp8} from what was measured for it. */
    BenchRow measured(Scaling scaling, Map<String, Samples> times, List<BenchRow.Check> checks) {
        GpuRow row = new GpuRow(GpuOverlapCase.FP8, name(scaling), "limit", times);
        row.put(shape()).put("byBlock", scaling == Scaling.BLOCK);
        double ofLimit = limit(row, "cublasLt's", FP8_GATED_NEEDED);
        double over = row.us(GpuOverlapCase.BF16) / row.us(GpuSides.PIPELINED);
        boolean byLink = row.us(GpuSides.GATHER) > row.us(GpuSides.CUBLAS);
        row.put("overBf16", over)
                .needs(
                        "pipelined",
                        over,
                        "bf16's speed",
                        byLink ? OVER_BF16_BY_LINK : OVER_BF16_BY_PRODUCT);
        return row.row(ofLimit, checks);
    }

    private Object[] shape() {
        return new Object[] {"ranks", shards.ranks(), "m", m(), "k", k, "n", n};
    }

    /**
     * The gated kernel beside cublasLt, and pipelined beside the longer of gather and product.
     *
     * @return the part of the limit that pipelined reaches
     */
    private static double limit(GpuRow row, String whose, double gatedNeeded) {
        double cublas = row.us(GpuSides.CUBLAS);
        double speed = cublas / row.us(GpuSides.GATED);
        double limit = Math.max(cublas, row.us(GpuSides.GATHER));
        double ofLimit = limit / row.us(GpuSides.PIPELINED);
        double needed = pipelinedNeeded(limit);
        row.put("gatedSpeed", speed, "gatedNeeded", gatedNeeded)
                .put("limitUs", limit, "ofLimit", ofLimit, "needed", needed)
                .needs("gated", speed, whose + " speed", gatedNeeded)
                .needs("pipelined", ofLimit, "the limit", needed);
        return ofLimit;
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

    @Override
    public String toString() {
        List<Long> rows =
                IntStream.range(0, shards.ranks()).mapToObj(shards::rows).distinct().toList();
        String uneven = rows.size() > 1 ? " uneven" : "";
        return "W %d, M %d%s K %d N %d".formatted(shards.ranks(), m(), uneven, k, n);
    }
}
