package dev.weft.cli.run;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.TextTable;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.op.Operator;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Reduction;
import java.util.List;

/** What {@code --explain} prints. */
public final class Explanation {

    /** The most lines of a plan that people would read. */
    private static final int MOST_LINES = 60;

    private Explanation() {}

    /** A plan that auto considered, from {@link Operator.Candidate}. */
    public record Tried(
            String algorithm,
            int chunksPerSource,
            double predictedNs,
            double measuredNs,
            boolean chosen) {

        static Tried of(Operator.Candidate candidate) {
            return new Tried(
                    candidate.algorithm().label(),
                    candidate.chunksPerSource(),
                    candidate.predictedNs(),
                    candidate.measuredNs(),
                    candidate.chosen());
        }
    }

    /** Prints the candidates, in the order given. */
    static void print(List<Tried> candidates, Console console) {
        TextTable table = new TextTable("algorithm", "chunks", "predicted ms", "measured ms", "");
        for (Tried candidate : candidates) {
            int chunks = candidate.chunksPerSource();
            table.row(
                    candidate.algorithm(),
                    chunks == 0 ? "-" : Integer.toString(chunks),
                    ms(candidate.predictedNs()),
                    ms(candidate.measuredNs()),
                    candidate.chosen() ? "<- taken" : "");
        }
        console.info("Candidates (chunks are per source):");
        table.lines().forEach(line -> console.print("  " + line));
    }

    private static String ms(double ns) {
        return Double.isNaN(ns) ? "-" : text("%.3f", ns / 1e6);
    }

    /** Prints what the ranks of the first group did to sum their products. */
    static void plans(ProblemSpec problem, Hosts hosts, RankReport report, Console console) {
        int first = problem.rankOf(0, 0);
        List<Integer> group = problem.replicaGroups().groups().getFirst();
        long rows = report.chunkRows();
        Chunks chunks = Chunks.byRows(problem.shards(first), problem.n(), rows, rows);
        plans(
                Reduction.of(report.algorithm())
                        .plans(
                                chunks,
                                problem.inner(first),
                                problem.sums().all(),
                                hosts.among(group)),
                console);
    }

    /** Prints what all ranks do. */
    static void plans(List<RankPlan> plans, Console console) {
        List<String> lines = RankPlan.describe(plans);
        console.info("The plan of all ranks:");
        lines.stream().limit(MOST_LINES).forEach(line -> console.print("  " + line));
        if (lines.size() > MOST_LINES) {
            console.print("  and %d lines more".formatted(lines.size() - MOST_LINES));
        }
    }
}
