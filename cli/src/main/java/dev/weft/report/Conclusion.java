package dev.weft.report;

import static dev.weft.report.Text.text;

/**
 * The result of a run, in a sentence.
 *
 * @param saved the share of sequential's time, 0 to 1; negative if overlap cost time
 * @param noise the uncertainty of that, with about 95% confidence; NaN if the times are predicted,
 *     or there are too few rounds
 */
public record Conclusion(double saved, double noise, String sentence) {

    /** Smaller parts cannot make a call noticeably faster, even if hidden completely. */
    private static final double LITTLE = 0.03;

    public static Conclusion of(RunRecord record) {
        Views views = record.views();
        return new Conclusion(views.saved(), views.noise(), sentence(record));
    }

    private static String sentence(RunRecord record) {
        Views views = record.views();
        if (record.problem().largestGroup() == 1) {
            return "One rank: nothing travels, so there is nothing to hide.";
        }
        if (record.execution().isSequential()) {
            return text(
                    "Nothing was overlapped: the call itself is sequential%s.",
                    record.execution().requestedAlgorithm().equals("auto")
                            ? ", which auto found to be the fastest"
                            : "");
        }
        double saved = views.saved();
        String gain = text("%.2fx as fast as %s", views.speedup(), unfused(record));
        if (views.predicted()) {
            return saved < 0
                    ? text("Overlap would cost %.1f%%: %s (predicted).", -100 * saved, gain)
                    : text("Overlap would save %.1f%%: %s (predicted).", 100 * saved, gain);
        }
        if (Double.isNaN(views.noise())) {
            return text(
                    "Too few rounds (%d) for a verdict: expected --iterations %d or more.",
                    views.pipelined().us().size(), Views.FEWEST_ROUNDS);
        }
        String margin = text("(+-%.1f%%)", 100 * views.noise());
        if (isSaved(views)) {
            return text("Overlap saved %.1f%% %s: %s.", 100 * saved, margin, gain);
        }
        if (isLost(views)) {
            return text("Overlap cost %.1f%% %s: %s.", -100 * saved, margin, gain);
        }
        return "Within the noise " + margin + ": " + why(record);
    }

    /** Whether overlap has saved time. If there is less to hide than the noise, it is noise. */
    static boolean isSaved(Views views) {
        return views.saved() > views.noise() && views.hideable() > views.noise();
    }

    /** Whether overlap has cost time. */
    static boolean isLost(Views views) {
        return -views.saved() > views.noise();
    }

    private static String unfused(RunRecord record) {
        return record.problem().isSummed() ? "multiplying first" : "gathering first";
    }

    private static String why(RunRecord record) {
        Views views = record.views();
        String exchange = record.problem().exchange();
        double share = views.commUs() / views.computeUs();
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
        if (views.overlapEfficiency().isPresent()) {
            return text(
                    "the %s takes %.0f%% of the product's time, but overlap hides next to nothing of"
                            + " it. Try other chunks (--splits-per-rank), or another --algorithm.",
                    exchange, 100 * share);
        }
        return text(
                "the %s takes %.0f%% of the product's time, but times vary too much to see what"
                        + " overlap saves. Try more rounds (--iterations).",
                exchange, 100 * share);
    }
}
