package dev.weft.cli.run;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.TextTable;
import dev.weft.op.Operator;
import java.util.ArrayList;
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

    /** As many lines of a plan as people would read. */
    static List<String> first(List<String> all) {
        List<String> lines = new ArrayList<>(all.subList(0, Math.min(all.size(), MOST_LINES)));
        if (all.size() > MOST_LINES) {
            lines.add("and %d lines more".formatted(all.size() - MOST_LINES));
        }
        return lines;
    }

    /** Prints such lines. */
    static void plans(List<String> lines, Console console) {
        console.info("The plan of all ranks:");
        lines.forEach(line -> console.print("  " + line));
    }
}
