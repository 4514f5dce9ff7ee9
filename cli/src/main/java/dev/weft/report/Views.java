package dev.weft.report;

import java.util.OptionalDouble;

/**
 * The views of one problem, measured in turn or predicted. Each sample is the slowest rank's time
 * of one round.
 *
 * <p>Those of the Ascend example's commands are the example's: sequential is the same transfers and
 * then the same product, and means are compared. Elsewhere sequential is the fastest gather without
 * overlap and then the product, and medians are compared.
 *
 * @param sequentialComm the gather's part of {@code sequential}
 * @param sequentialCompute the product's part of {@code sequential}
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

    /** How many spreads the hidden part must be for the efficiency to be meaningful. */
    private static final double MEASURABLE_SPREADS = 3;

    /** Fewer samples have no meaningful spread. */
    private static final int MEASURABLE_SAMPLES = 3;

    /** Weft's own views. */
    public Views(
            Samples computeOnly,
            Samples commOnly,
            Samples sequential,
            Samples sequentialComm,
            Samples sequentialCompute,
            Samples pipelined,
            boolean predicted) {
        this(
                computeOnly,
                commOnly,
                sequential,
                sequentialComm,
                sequentialCompute,
                pipelined,
                predicted,
                null);
    }

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

    /**
     * The share of the smaller of gather and product that is hidden: ((seqComm + seqCompute) -
     * pipelined) / min(seqComm, seqCompute), 0 if negative. Empty if the smaller one is under three
     * times the spread of the samples, or there are under three of them: the figure would be noise.
     */
    public OptionalDouble overlapEfficiency() {
        double comm = us(sequentialComm);
        double compute = us(sequentialCompute);
        double smaller = Math.min(comm, compute);
        double spread = Math.max(sequential.spread(), pipelined.spread());
        boolean tooFew = !predicted && pipelined.us().size() < MEASURABLE_SAMPLES;
        if (tooFew || smaller <= 0 || smaller < MEASURABLE_SPREADS * spread) {
            return OptionalDouble.empty();
        }
        return OptionalDouble.of(Math.max(0, (comm + compute - us(pipelined)) / smaller));
    }

    /** The larger of only the product and only the transfers, over pipelined: 1 is perfect. */
    public double limitFraction() {
        return Math.max(us(computeOnly), us(commOnly)) / us(pipelined);
    }
}
