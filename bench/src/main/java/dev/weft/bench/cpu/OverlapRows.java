package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Figures;
import dev.weft.report.Samples;
import dev.weft.report.Views;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Turns the views of runs into the rows of {@link OverlapCase}. Any thread may call it. */
final class OverlapRows {

    /** How near to its limit a pipelined call is wanted. */
    private static final double WANTED = 0.95;

    /** How much slower than the product alone a call may be whose gather costs nothing. */
    private static final double FREE_GATHER = 1.03;

    private static final String PASS = "pass";
    private static final String COPY_LIMIT = "copyLimit";

    private OverlapRows() {}

    /** Pipelined against sequential for an algorithm that moves nothing. */
    static BenchRow direct(String name, Views views) {
        Map<String, Double> figures = figures(views);
        figures.putAll(Figures.of(PASS, figures.get("limit") >= WANTED));
        return againstSequential(name, views, figures);
    }

    /**
     * Pipelined against sequential for an algorithm whose lanes copy. The copies take core time
     * that the product does without: all cores together cannot be done before both have had theirs.
     *
     * @param cores how many multiply
     * @param copyCoreNs core time of all copies of one call
     */
    static BenchRow copying(String name, Views views, int cores, double copyCoreNs) {
        Map<String, Double> figures = figures(views);
        double leastUs = views.computeOnly().median() + copyCoreNs / 1e3 / cores;
        figures.put("copyCoreNs", copyCoreNs);
        figures.put(COPY_LIMIT, leastUs / views.pipelined().median());
        return againstSequential(name, views, figures);
    }

    /** The same rows, of which the one nearest to its limit is judged. */
    static List<BenchRow> judgeBest(List<BenchRow> copying) {
        BenchRow best =
                copying.stream()
                        .max(Comparator.comparingDouble(row -> row.figures().get(COPY_LIMIT)))
                        .orElseThrow();
        return copying.stream().map(row -> row == best ? judged(row) : row).toList();
    }

    private static BenchRow judged(BenchRow row) {
        Map<String, Double> figures = new LinkedHashMap<>(row.figures());
        figures.putAll(Figures.of(PASS, figures.get(COPY_LIMIT) >= WANTED));
        return new BenchRow(row.item(), row.name(), row.peer(), row.ratio(), figures);
    }

    /** Pipelined against the product alone, of a run whose gather costs nothing. */
    static BenchRow freeGather(String name, Views views) {
        double ratio = views.computeOnly().median() / views.pipelined().median();
        Map<String, Double> figures = new LinkedHashMap<>();
        put(figures, "computeOnly", views.computeOnly());
        put(figures, "pipelined", views.pipelined());
        figures.putAll(Figures.of(PASS, 1 / ratio <= FREE_GATHER));
        return new BenchRow(OverlapCase.ITEM, name, "compute-only", ratio, figures);
    }

    private static BenchRow againstSequential(
            String name, Views views, Map<String, Double> figures) {
        return new BenchRow(OverlapCase.ITEM, name, "sequential", views.speedup(), figures);
    }

    private static Map<String, Double> figures(Views views) {
        Map<String, Double> figures = new LinkedHashMap<>();
        put(figures, "computeOnly", views.computeOnly());
        put(figures, "commOnly", views.commOnly());
        put(figures, "sequential", views.sequential());
        put(figures, "sequentialGather", views.sequentialComm());
        put(figures, "pipelined", views.pipelined());
        double gatherUs = views.sequentialComm().median();
        double longerUs = Math.max(views.computeOnly().median(), views.commOnly().median());
        figures.put("gatherOverProduct", gatherUs / views.sequentialCompute().median());
        figures.put("limit", longerUs / views.pipelined().median());
        return figures;
    }

    private static void put(Map<String, Double> figures, String name, Samples view) {
        figures.put(name + "Ns", view.median() * 1e3);
        figures.put(name + "SpreadNs", view.spread() * 1e3);
    }
}
