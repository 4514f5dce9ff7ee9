package dev.weft.report;

import static dev.weft.report.Text.text;

import dev.weft.statistics.Quantiles;
import java.util.stream.IntStream;

/**
 * The result of a run, in a sentence. The views alternate, so that a round's pipelined call is
 * compared with the sequential one of the same round.
 *
 * @param saved the share of sequential's time, 0 to 1; negative if overlap cost time
 * @param noise the uncertainty of that, with about 95% confidence; NaN if the times are predicted,
 *     or there are too few rounds
 */
public record Conclusion(double saved, double noise, String sentence) {

    private static final int FEWEST_ROUNDS = 3;

    /**
     * The middle half of normal samples is 1.35 standard deviations wide, the median of n samples
     * has a deviation of 1.25 / sqrt(n), and 95% of all lie within two.
     */
    private static final double OF_SPREAD = 2 * 1.25 / 1.35;

    /** Smaller parts cannot make a call noticeably faster, even if hidden completely. */
    private static final double LITTLE = 0.03;

    public static Conclusion of(RunRecord record) {
        Views views = record.views();
        int rounds = Math.min(views.pipelined().us().size(), views.sequential().us().size());
        double[] saved =
                IntStream.range(0, rounds).mapToDouble(round -> saved(views, round)).toArray();
        double median = Quantiles.median(saved);
        boolean told = !views.predicted() && rounds >= FEWEST_ROUNDS;
        double noise = told ? OF_SPREAD * Quantiles.spread(saved) / Math.sqrt(rounds) : Double.NaN;
        return new Conclusion(median, noise, sentence(record, median, noise));
    }

    private static double saved(Views views, int round) {
        double sequential = views.sequential().us().get(round);
        return sequential > 0 ? 1 - views.pipelined().us().get(round) / sequential : 0;
    }

    private static String sentence(RunRecord record, double saved, double noise) {
        Views views = record.views();
        if (record.problem().largestGroup() == 1) {
            return "One rank: nothing travels, so there is nothing to hide.";
        }
        String gain = text("%.2fx as fast as %s", views.speedup(), unfused(record));
        if (views.predicted()) {
            return saved < 0
                    ? text("Overlap would cost %.1f%% (predicted).", -100 * saved)
                    : text("Overlap would save %.1f%%: %s (predicted).", 100 * saved, gain);
        }
        if (Double.isNaN(noise)) {
            return text(
                    "Too few rounds (%d) to tell the noise: expected --iterations %d or more.",
                    views.pipelined().us().size(), FEWEST_ROUNDS);
        }
        String margin = text("(+-%.1f%%)", 100 * noise);
        if (saved > noise && hideable(views) > noise) {
            return text("Overlap saved %.1f%% %s: %s.", 100 * saved, margin, gain);
        }
        if (-saved > noise) {
            return text("Overlap cost %.1f%% %s: %s.", -100 * saved, margin, gain);
        }
        return "Within the noise " + margin + ": " + why(record);
    }

    /** No more than the shorter of both parts can be hidden; anything beyond is noise. */
    private static double hideable(Views views) {
        double comm = views.sequentialComm().median();
        double compute = views.sequentialCompute().median();
        return Math.min(comm, compute) / views.sequential().median();
    }

    private static String unfused(RunRecord record) {
        return record.problem().isSummed() ? "multiplying first" : "gathering first";
    }

    private static String why(RunRecord record) {
        Views views = record.views();
        String exchange = record.problem().exchange();
        double share = views.sequentialComm().median() / views.sequentialCompute().median();
        if (share < LITTLE) {
            return text(
                    "there is nothing to hide, as the %s takes %.1f%% of the product's time. Try"
                            + " weft demo, or a narrower B (--gn).",
                    exchange, 100 * share);
        }
        if (share > 1 / LITTLE) {
            return text(
                    "there is nothing to hide behind, as the product takes %.1f%% of the %s's"
                            + " time. Try a wider B (--gn).",
                    100 / share, exchange);
        }
        return text(
                "the %s takes %.0f%% of the product's time, but times vary too much to see what"
                        + " overlap saves. Try more rounds (--iterations).",
                exchange, 100 * share);
    }
}
