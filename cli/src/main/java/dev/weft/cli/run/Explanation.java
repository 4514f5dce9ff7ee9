package dev.weft.cli.run;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.TextTable;
import dev.weft.op.Operator.Candidate;
import java.util.List;

/** What {@code --explain} prints: the candidates among which was chosen, in the order given. */
final class Explanation {

    private Explanation() {}

    static void print(List<Candidate> candidates, Console console) {
        TextTable table = new TextTable("algorithm", "chunks", "predicted ms", "measured ms", "");
        for (Candidate candidate : candidates) {
            int chunks = candidate.chunksPerSource();
            table.row(
                    candidate.algorithm().label(),
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
}
