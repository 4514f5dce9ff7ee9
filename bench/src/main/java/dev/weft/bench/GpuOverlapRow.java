package dev.weft.bench;

import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** A row of the overlap table from what was measured for it. Pure. */
final class GpuOverlapRow {

    static final String ITEM = "overlap";

    private GpuOverlapRow() {}

    static String name(GpuShape shape, DType out) {
        return "row " + shape.number() + ": " + shape + ", fp16 to " + out.label();
    }

    /**
     * @param counts figures that are only recorded
     * @param pytorchsCard whether PyTorch's times were measured on such a card
     */
    static GpuRow of(
            GpuShape shape,
            DType out,
            Map<String, Samples> times,
            Map<String, Double> counts,
            List<GpuCheck> checks,
            boolean pytorchsCard) {
        double cublas = times.get(GpuOverlapSides.CUBLAS).median();
        double pipelined = times.get(GpuOverlapSides.PIPELINED).median();
        double gatedSpeed = cublas / times.get(GpuOverlapSides.GATED).median();
        double limit = Math.max(cublas, times.get(GpuOverlapSides.GATHER).median());
        double ofLimit = limit / pipelined;
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("row", (double) shape.number());
        figures.put("ranks", (double) shape.ranks());
        figures.put("m", (double) shape.m());
        figures.put("k", (double) shape.k());
        figures.put("n", (double) shape.n());
        figures.put("outBytes", (double) out.bytes());
        figures.put("gatedSpeed", gatedSpeed);
        figures.put("gatedNeeded", GpuRules.gatedNeeded(shape.m()));
        figures.put("limitUs", limit);
        figures.put("ofLimit", ofLimit);
        figures.put("needed", GpuRules.pipelinedNeeded(limit));
        figures.putAll(new TreeMap<>(counts));
        List<String> misses = new ArrayList<>();
        below(misses, "gated", gatedSpeed, "cuBLAS's speed", GpuRules.gatedNeeded(shape.m()));
        below(misses, "pipelined", ofLimit, "the limit", GpuRules.pipelinedNeeded(limit));
        // PyTorch wrote fp16, so only that is compared.
        if (pytorchsCard && out == DType.FP16) {
            boolean faster = pipelined < shape.pytorchBestUs();
            figures.put("pytorchSequentialUs", shape.pytorchSequentialUs());
            figures.put("pytorchPipelinedUs", shape.pytorchPipelinedUs());
            figures.put("fasterThanPytorch", faster ? 1.0 : 0.0);
            if (!faster) {
                misses.add(
                        String.format(
                                Locale.ROOT,
                                "pipelined is not faster than PyTorch's %.0f us",
                                shape.pytorchBestUs()));
            }
        }
        return new GpuRow(ITEM, name(shape, out), "limit", ofLimit, times, figures, checks, misses);
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
}
