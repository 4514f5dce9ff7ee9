package dev.weft.sim;

/**
 * The simulator's prediction for a call.
 *
 * @param ns from the call's start until the slowest rank's transfers and products are done
 * @param gatherNs until the slowest rank has all rows; 0 if nothing is transferred. For sums, the
 *     time after the last product
 * @param simulatedRanks ranks that were simulated; each stands for {@code ranks / simulatedRanks}
 *     that do the same at the same times
 */
public record Prediction(
        double ns,
        double gatherNs,
        Bounds bounds,
        int simulatedRanks,
        long transfers,
        long events) {}
