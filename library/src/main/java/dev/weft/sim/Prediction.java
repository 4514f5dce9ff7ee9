package dev.weft.sim;

/**
 * The simulator's prediction for a call.
 *
 * @param ns from the call's start until the slowest rank's steps are done
 * @param arrivedNs until the last copy has arrived; 0 if nothing is copied
 * @param multipliedNs until the last product is done
 * @param simulatedRanks ranks that were simulated; each stands for {@code ranks / simulatedRanks}
 *     that do the same at the same times
 */
public record Prediction(
        double ns,
        double arrivedNs,
        double multipliedNs,
        Bounds bounds,
        int simulatedRanks,
        long transfers,
        long events) {}
