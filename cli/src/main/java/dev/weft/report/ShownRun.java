package dev.weft.report;

import static dev.weft.report.Text.text;

import java.util.List;

/**
 * What a page shows of one run.
 *
 * @param name the user's label, or the record's file
 * @param verdict null if nothing was checked
 * @param conclusion the result, in a sentence; null if nothing was compared
 * @param call null if no spans were kept
 * @param bytesPerRow the bytes of a row of A
 * @param flopsPerRow the operations of a row of one rank's product; 0 if nothing is multiplied
 * @param basis null if it cannot be compared with others
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
        Analysis analysis,
        Basis basis) {

    /**
     * What decides whether runs can be compared.
     *
     * @param product what was computed
     * @param setup what the time of the product alone depends on, besides the machine
     */
    public record Basis(String product, String setup) {}

    /** One of its views; null if it has none of that name. */
    View view(String key) {
        return views.stream().filter(view -> view.key().equals(key)).findFirst().orElse(null);
    }

    /** Its result for a terminal, in a line; null if there is none. */
    public String line() {
        if (verdict != null && verdict.state() == State.FAILED) {
            return name + ": FAILED: " + verdict.text();
        }
        return conclusion == null ? null : name + ": " + conclusion;
    }

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
                analysis,
                basis);
    }

    /** Whether it was right. */
    public record Verdict(State state, String text) {}

    /** The state of a verdict. */
    public enum State {
        PASSED,
        FAILED,
        PREDICTED,
        RUNNING
    }

    /**
     * A figure.
     *
     * @param value NaN if it could not be measured
     * @param text the value for people to read
     * @param note how it was obtained
     */
    public record Fact(String key, String label, double value, String text, String note) {}

    /** Anything else worth knowing. */
    public record Detail(String label, String value) {}

    /**
     * @param parts its parts; may be empty
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

    /** A part of a view, with its median. */
    public record ViewPart(String label, double medianUs) {}

    /** What follows from the spans. */
    public record Analysis(
            List<Integer> critical,
            List<TimeShares.RankShares> shares,
            String idleText,
            Links links,
            List<Advice> advice) {

        /**
         * @param bytesPerRow the bytes of a row of A
         * @param workers the kind of workers whose time counts
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
                    Links.of(call, bytesPerRow),
                    List.of());
        }

        /** The analysis of spans that do not say what their ranks waited for. */
        private static Analysis unexplained(CallSpans call) {
            String text =
                    call.ranks().size() < call.members()
                            ? text(
                                    "Shown is what %d of %d ranks did.",
                                    call.ranks().size(), call.members())
                            : "Only the start and the end of the gather are known.";
            Links unknown = new Links(call.worldSize(), false, List.of());
            return new Analysis(List.of(), List.of(), text, unknown, List.of());
        }

        Analysis withAdvice(List<Advice> found) {
            return new Analysis(critical, shares, idleText, links, List.copyOf(found));
        }
    }

    public ShownRun {
        facts = List.copyOf(facts);
        details = List.copyOf(details);
        views = List.copyOf(views);
    }
}
