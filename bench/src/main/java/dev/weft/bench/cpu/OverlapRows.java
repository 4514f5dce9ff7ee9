package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Figures;
import dev.weft.report.Views;
import java.util.Comparator;
import java.util.List;

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
        Figures figures = figures(views);
        return againstSequential(name, views, figures.with(PASS, figures.get("limit") >= WANTED));
    }

    /**
     * Pipelined against sequential for an algorithm whose lanes copy. The copies take core time
     * that the product does without: all cores together cannot be done before both have had theirs.
     *
     * @param cores how many multiply
     * @param copyCoreNs core time of all copies of one call
     */
    static BenchRow copying(String name, Views views, int cores, double copyCoreNs) {
        double leastUs = views.computeOnly().median() + copyCoreNs / 1e3 / cores;
        return againstSequential(
                name,
                views,
                figures(views)
                        .with("copyCoreNs", copyCoreNs)
                        .with(COPY_LIMIT, leastUs / views.pipelined().median()));
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
        Figures figures = new Figures();
        figures.putAll(row.figures());
        figures.with(PASS, figures.get(COPY_LIMIT) >= WANTED);
        return new BenchRow(row.item(), row.name(), row.peer(), row.ratio(), figures);
    }

    /** Pipelined against the product alone, of a run whose gather costs nothing. */
    static BenchRow freeGather(String name, Views views) {
        double ratio = views.computeOnly().median() / views.pipelined().median();
        Figures figures =
                new Figures()
                        .with("computeOnly", views.computeOnly())
                        .with("pipelined", views.pipelined())
                        .with(PASS, 1 / ratio <= FREE_GATHER);
        return new BenchRow(OverlapCase.ITEM, name, "compute-only", ratio, figures);
    }

    private static BenchRow againstSequential(String name, Views views, Figures figures) {
        return new BenchRow(OverlapCase.ITEM, name, "sequential", views.speedup(), figures);
    }

    private static Figures figures(Views views) {
        double gatherUs = views.sequentialComm().median();
        double longerUs = Math.max(views.computeOnly().median(), views.commOnly().median());
        return new Figures()
                .with("computeOnly", views.computeOnly())
                .with("commOnly", views.commOnly())
                .with("sequential", views.sequential())
                .with("sequentialGather", views.sequentialComm())
                .with("pipelined", views.pipelined())
                .with("gatherOverProduct", gatherUs / views.sequentialCompute().median())
                .with("limit", longerUs / views.pipelined().median());
    }
}
