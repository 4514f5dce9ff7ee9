package dev.weft.predict;

/**
 * How long a call would take on a machine, until its slowest rank is done.
 *
 * @param ns the whole call
 * @param gatherNs its transfers alone
 * @param productNs its products alone
 * @param boundNs what no other order of the same transfers and products could beat
 */
public record PredictedCall(double ns, double gatherNs, double productNs, double boundNs) {}
