package dev.weft.cli.run;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.TextTable;
import dev.weft.op.Operator;
import dev.weft.plan.step.StepPlan;
import java.util.ArrayList;
import java.util.List;

/** What {@code --explain} prints. */
public final class Explanation {

    /** The most lines of a plan that people would read. */
    private static final int MOST_LINES = 40;

    private Explanation() {}

    /** What auto considered, in the order given; empty if it considered nothing. */
    static List<String> table(List<Operator.Candidate> candidates) {
        if (candidates.isEmpty()) {
            return List.of();
        }
        TextTable table = new TextTable("algorithm", "chunks", "predicted ms", "measured ms", "");
        for (Operator.Candidate candidate : candidates) {
            int chunks = candidate.chunksPerSource();
            table.row(
                    candidate.algorithm().label(),
                    chunks == 0 ? "-" : Integer.toString(chunks),
                    ms(candidate.predictedNs()),
                    ms(candidate.measuredNs()),
                    candidate.chosen() ? "<- taken" : "");
        }
        return table.lines();
    }

    private static String ms(double ns) {
        return Double.isNaN(ns) ? "-" : text("%.3f", ns / 1e6);
    }

    /** As many lines of a plan as people would read. */
    static List<String> plan(List<StepPlan> plans) {
        List<String> all = StepPlan.describe(plans, MOST_LINES + 1);
        List<String> lines = new ArrayList<>(all.subList(0, Math.min(all.size(), MOST_LINES)));
        if (all.size() > MOST_LINES) {
            lines.add("... (weft plan --dump prints all of it)");
        }
        return lines;
    }

    /** Prints such plans and tables, each if it has lines. */
    static void print(List<String> plans, List<String> candidates, Console console) {
        print("Candidates (chunks are per source):", candidates, console);
        print("The plan of all ranks:", plans, console);
    }

    private static void print(String heading, List<String> lines, Console console) {
        if (!lines.isEmpty()) {
            console.info(heading);
            lines.forEach(line -> console.print("  " + line));
        }
    }
}
