package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchRow;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Turns the figures of runs into the rows of {@link OverlapCase}. Any thread may call it. */
final class OverlapRows {

    /** How near to its limit a pipelined call is wanted. */
    private static final double WANTED = 0.95;

    /** How much slower than the product alone a call may be whose gather costs nothing. */
    private static final double FREE_GATHER = 1.03;

    private static final String PASS = "pass";
    private static final String COPY_LIMIT = "copyLimit";

    private OverlapRows() {}

    /** Pipelined against sequential for an algorithm that moves nothing. */
    static BenchRow direct(String name, RunFigures run) {
        Map<String, Double> figures = figures(run);
        figures.put(PASS, figures.get("limit") >= WANTED ? 1.0 : 0.0);
        return againstSequential(name, run, figures);
    }

    /**
     * Pipelined against sequential for an algorithm whose lanes copy. The copies take core time
     * that the product does without: all cores together cannot be done before both have had theirs.
     *
     * @param cores how many multiply
     * @param copyCoreNs core time of all copies of one call
     */
    static BenchRow copying(String name, RunFigures run, int cores, double copyCoreNs) {
        Map<String, Double> figures = figures(run);
        double coreNs = run.medianNs("computeOnly") * cores + copyCoreNs;
        figures.put("copyCoreNs", copyCoreNs);
        figures.put(COPY_LIMIT, coreNs / cores / run.medianNs("pipelined"));
        return againstSequential(name, run, figures);
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
        figures.put(PASS, figures.get(COPY_LIMIT) >= WANTED ? 1.0 : 0.0);
        return new BenchRow(row.item(), row.name(), row.peer(), row.ratio(), figures);
    }

    /** Pipelined against the product alone, of a run whose gather costs nothing. */
    static BenchRow freeGather(String name, RunFigures run) {
        double computeOnlyNs = run.medianNs("computeOnly");
        double pipelinedNs = run.medianNs("pipelined");
        Map<String, Double> figures = new LinkedHashMap<>();
        put(figures, "computeOnly", run, "computeOnly");
        put(figures, "pipelined", run, "pipelined");
        figures.put(PASS, pipelinedNs <= FREE_GATHER * computeOnlyNs ? 1.0 : 0.0);
        return new BenchRow(
                OverlapCase.ITEM, name, "compute-only", computeOnlyNs / pipelinedNs, figures);
    }

    private static BenchRow againstSequential(
            String name, RunFigures run, Map<String, Double> figures) {
        double ratio = run.medianNs("sequential") / run.medianNs("pipelined");
        return new BenchRow(OverlapCase.ITEM, name, "sequential", ratio, figures);
    }

    private static Map<String, Double> figures(RunFigures run) {
        Map<String, Double> figures = new LinkedHashMap<>();
        put(figures, "computeOnly", run, "computeOnly");
        put(figures, "commOnly", run, "commOnly");
        put(figures, "sequential", run, "sequential");
        put(figures, "sequentialGather", run, "sequential/comm");
        put(figures, "pipelined", run, "pipelined");
        figures.put(
                "gatherOverProduct",
                run.medianNs("sequential/comm") / run.medianNs("sequential/compute"));
        figures.put(
                "limit",
                Math.max(run.medianNs("computeOnly"), run.medianNs("commOnly"))
                        / run.medianNs("pipelined"));
        return figures;
    }

    private static void put(Map<String, Double> figures, String name, RunFigures run, String view) {
        figures.put(name + "Ns", run.medianNs(view));
        figures.put(name + "SpreadNs", run.spreadNs(view));
    }
}
