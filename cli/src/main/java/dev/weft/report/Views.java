package dev.weft.report;

import java.util.OptionalDouble;

/**
 * The views of one problem, measured in turn or predicted. Each sample is the slowest rank's time
 * of one round. All figures that compare them come from their medians, so that none contradicts
 * another; docs/run-record.md defines them.
 *
 * <p>Those of the Ascend example's commands are the example's: sequential is the same transfers and
 * then the same product, and means are compared. Elsewhere sequential is the fastest gather without
 * overlap and then the product, and medians are compared.
 *
 * @param sequentialComm the gather's part of {@code sequential}, of the same rank
 * @param sequentialCompute the product's part of {@code sequential}, of the same rank
 * @param predicted whether the times are simulated, in which case one sample is as good as many
 * @param baseline in the example's views, what is sequential elsewhere; otherwise null
 */
public record Views(
        Samples computeOnly,
        Samples commOnly,
        Samples sequential,
        Samples sequentialComm,
        Samples sequentialCompute,
        Samples pipelined,
        boolean predicted,
        Samples baseline) {

    /** How many times the noise the smaller part must be for the efficiency to be meaningful. */
    private static final double MEASURABLE = 3;

    /** More than noise can make of a perfect overlap. */
    private static final double UNBELIEVABLE = 1.1;

    /** Less is printed as 100.0%. */
    private static final double OVER = 1.0005;

    /** Fewer rounds have no meaningful noise. */
    static final int FEWEST_ROUNDS = 3;

    /** Whether they are the Ascend example's. */
    public boolean ofExample() {
        return baseline != null;
    }

    /** The one number for a view: its median, or its mean as in the example. */
    public double us(Samples view) {
        return ofExample() ? view.mean() : view.median();
    }

    /** Sequential over pipelined. */
    public double speedup() {
        return us(sequential) / us(pipelined);
    }

    /** The share of sequential's time that pipelined saves; negative if it takes longer. */
    public double saved() {
        return us(sequential) > 0 ? 1 - us(pipelined) / us(sequential) : 0;
    }

    /** How far {@link #saved} may be off; NaN if it is predicted, or there are too few rounds. */
    public double noise() {
        int rounds = Math.min(pipelined.us().size(), sequential.us().size());
        boolean known = !predicted && rounds >= FEWEST_ROUNDS && saved() < 1;
        return known ? pipelined.noiseOver(sequential) : Double.NaN;
    }

    /** The gather's part of sequential's median; both parts add up to it. */
    public double commUs() {
        double comm = us(sequentialComm);
        double parts = comm + us(sequentialCompute);
        return parts > 0 ? us(sequential) * comm / parts : 0;
    }

    /** The product's part of sequential's median. */
    public double computeUs() {
        return us(sequential) - commUs();
    }

    /** The share of sequential's time that overlap can hide: the smaller of gather and product. */
    public double hideable() {
        double whole = us(sequential);
        return whole > 0 ? Math.min(commUs(), computeUs()) / whole : 0;
    }

    /**
     * The share of the smaller of gather and product that is hidden: what was saved over what could
     * be, 0 to 1. Empty if the latter is under three times the noise, or that is unknown.
     */
    public OptionalDouble overlapEfficiency() {
        boolean measurable = predicted || hideable() >= MEASURABLE * noise();
        return measurable && hideable() > 0
                ? OptionalDouble.of(Math.clamp(saved() / hideable(), 0, 1))
                : OptionalDouble.empty();
    }

    /** Why a measured efficiency is empty. */
    public String whyNoEfficiency(String exchange) {
        return Double.isNaN(noise())
                ? "too few rounds"
                : "the smaller of " + exchange + " and product is under 3x the noise";
    }

    /** The share of the limit that pipelined reaches, at most 1: nothing is faster than that. */
    public double limitFraction() {
        return Math.min(1, limitRatio());
    }

    /** Why pipelined seems to be faster than its limit; null if it does not. */
    public String overLimit() {
        if (limitRatio() < OVER) {
            return null;
        }
        if (predicted) {
            return "the transfers alone would take longer, as they all start at once";
        }
        return Text.text("%.1f%% measured: ", 100 * limitRatio())
                + (limitRatio() <= UNBELIEVABLE
                        ? "noise"
                        : "the machine was busy or early rounds were still warming up");
    }

    /** Whether the views were measured under conditions too different to speak of a limit. */
    boolean hasNoLimit() {
        return !predicted && limitRatio() > UNBELIEVABLE;
    }

    /** The larger of only the product and only the transfers, over pipelined. */
    private double limitRatio() {
        return Math.max(us(computeOnly), us(commOnly)) / us(pipelined);
    }
}
