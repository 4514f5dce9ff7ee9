package dev.weft.cli.run;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.TextTable;
import dev.weft.op.Candidate;
import java.util.List;
import java.util.Locale;

/** What {@code --explain} prints: the candidates among which was chosen, in the order given. */
record Explanation(List<Candidate> candidates) {

    Explanation {
        candidates = List.copyOf(candidates);
    }

    void print(Console console) {
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
        return Double.isNaN(ns) ? "-" : String.format(Locale.ROOT, "%.3f", ns / 1e6);
    }
}
