package dev.weft.report;

import static dev.weft.report.Text.text;

import java.util.List;

/**
 * What a page shows of one run.
 *
 * @param name a label of the user's, or the record's file
 * @param verdict null if nothing was judged
 * @param conclusion what it comes to, in a sentence; null if nothing was compared
 * @param call null where no spans were kept
 * @param bytesPerRow of A
 * @param flopsPerRow of one rank's product; 0 where nothing is multiplied
 */
public record ShownRun(
        String name,
        String subtitle,
        boolean simulated,
        Verdict verdict,
        String conclusion,
        List<Fact> facts,
        List<Detail> details,
        List<View> views,
        CallSpans call,
        double bytesPerRow,
        double flopsPerRow,
        Analysis analysis) {

    ShownRun named(String newName) {
        return new ShownRun(
                newName,
                subtitle,
                simulated,
                verdict,
                conclusion,
                facts,
                details,
                views,
                call,
                bytesPerRow,
                flopsPerRow,
                analysis);
    }

    /** Whether it was right. */
    public record Verdict(State state, String text) {}

    /** Of a verdict. */
    public enum State {
        PASSED,
        FAILED,
        PREDICTED,
        RUNNING
    }

    /**
     * A figure.
     *
     * @param value NaN where it could not be measured
     * @param text as people read it
     * @param note how it came about
     */
    public record Fact(String key, String label, double value, String text, String note) {}

    /** Anything else worth knowing. */
    public record Detail(String label, String value) {}

    /**
     * @param parts of which it consists; may be none
     */
    public record View(
            String key,
            String label,
            double medianUs,
            double spreadUs,
            List<Double> samplesUs,
            List<ViewPart> parts) {

        public View(String key, String label, Samples samples, List<ViewPart> parts) {
            this(key, label, samples.median(), samples.spread(), samples.us(), parts);
        }
    }

    /** A part of a view by its median. */
    public record ViewPart(String label, double medianUs) {}

    /** What the spans tell. */
    public record Analysis(
            List<Integer> critical,
            List<TimeShares.RankShares> shares,
            String idleText,
            Links links,
            List<Advice> advice) {

        /**
         * @param bytesPerRow of A
         * @param workers whose time is looked at
         */
        public static Analysis of(CallSpans call, double bytesPerRow, CallSpans.TrackKind workers) {
            if (!call.isWhole()) {
                return unexplained(call);
            }
            SpanDependencies releases = new SpanDependencies(call);
            List<TimeShares.RankShares> shares = TimeShares.of(call, releases, workers);
            return new Analysis(
                    CriticalPath.of(call, releases),
                    shares,
                    TimeShares.text(shares, call.endNs()),
                    Links.of(call, releases, bytesPerRow),
                    List.of());
        }

        /** Of spans that do not tell what their ranks waited for. */
        private static Analysis unexplained(CallSpans call) {
            String text =
                    call.ranks().size() < call.members()
                            ? text(
                                    "Shown is what %d of %d ranks did.",
                                    call.ranks().size(), call.members())
                            : "Of the gather only its begin and its end are known.";
            Links untold = new Links(call.worldSize(), false, List.of());
            return new Analysis(List.of(), List.of(), text, untold, List.of());
        }

        Analysis withAdvice(List<Advice> given) {
            return new Analysis(critical, shares, idleText, links, List.copyOf(given));
        }
    }

    public ShownRun {
        facts = List.copyOf(facts);
        details = List.copyOf(details);
        views = List.copyOf(views);
    }
}
