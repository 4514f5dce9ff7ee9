package dev.weft.report;

import static dev.weft.report.Text.text;

import dev.weft.report.ShownRun.View;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Which of several runs was the fastest.
 *
 * @param sentence the result
 * @param warnings why it may be wrong, one sentence each
 */
public record Comparison(String sentence, List<String> warnings) {

    /** Chunks of another size change the time of the product alone by less. */
    private static final double CHANGED = 0.05;

    public Comparison {
        warnings = List.copyOf(warnings);
    }

    /** Runs between which times vary by more than either of them shows: noise is a spread here. */
    public static Comparison of(List<ShownRun> runs) {
        return new Comparison(sentence(runs), warnings(runs));
    }

    private static String sentence(List<ShownRun> runs) {
        if (runs.stream().anyMatch(run -> run.basis() == null)
                || runs.stream().map(run -> run.basis().product()).distinct().count() > 1) {
            return "The runs computed different products, so that none is the fastest.";
        }
        if (runs.stream().anyMatch(Comparison::hasTooFewRounds)) {
            return text(
                    "Too few rounds to tell which run is the fastest: expected %d or more of each.",
                    Views.FEWEST_ROUNDS);
        }
        List<ShownRun> bySpeed =
                runs.stream()
                        .sorted(Comparator.comparingDouble(run -> pipelined(run).medianUs()))
                        .toList();
        ShownRun first = bySpeed.get(0);
        ShownRun second = bySpeed.get(1);
        double slower = pipelined(second).medianUs();
        double gap = slower - pipelined(first).medianUs();
        double noise = Math.max(pipelined(first).spreadUs(), pipelined(second).spreadUs());
        return gap <= noise
                ? text(
                        "%s and %s are equally fast within the noise (%.1f%%).",
                        first.name(), second.name(), 100 * noise / slower)
                : text(
                        "%s is the fastest: %.1f%% less time than %s (noise %.1f%%).",
                        first.name(), 100 * gap / slower, second.name(), 100 * noise / slower);
    }

    private static View pipelined(ShownRun run) {
        return run.view("pipelined");
    }

    private static boolean hasTooFewRounds(ShownRun run) {
        return !run.simulated() && pipelined(run).samplesUs().size() < Views.FEWEST_ROUNDS;
    }

    /** Compares each run with the first of the same setup, by the time of the product alone. */
    private static List<String> warnings(List<ShownRun> runs) {
        List<String> warnings = new ArrayList<>();
        Map<String, ShownRun> firsts = new HashMap<>();
        for (ShownRun run : runs) {
            if (run.simulated() || run.basis() == null || hasTooFewRounds(run)) {
                continue;
            }
            ShownRun first = firsts.putIfAbsent(run.basis().setup(), run);
            if (first == null) {
                continue;
            }
            View before = first.view("computeOnly");
            View now = run.view("computeOnly");
            double less = Math.min(before.medianUs(), now.medianUs());
            double gap = Math.abs(before.medianUs() - now.medianUs()) / less;
            double noise = Math.max(before.spreadUs(), now.spreadUs()) / less;
            if (gap > Math.max(noise, CHANGED)) {
                boolean slower = now.medianUs() > before.medianUs();
                warnings.add(
                        text(
                                "The product alone took %.1f%% longer in %s than in %s (noise"
                                        + " %.1f%%): the machine or its load changed between the"
                                        + " runs, so their times cannot be compared.",
                                100 * gap,
                                (slower ? run : first).name(),
                                (slower ? first : run).name(),
                                100 * noise));
            }
        }
        return warnings;
    }
}
