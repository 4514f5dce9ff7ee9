package dev.weft.sim;

/**
 * Times that no schedule of the same transfers and products can beat, in nanoseconds.
 *
 * @param pathNs the longest chain of steps that each need the one before
 * @param linkNs the load of the busiest link or bus
 * @param computeNs the load of the busiest rank, or of the busiest cores that ranks share
 */
public record Bounds(double pathNs, double linkNs, double computeNs) {

    /** The largest of them. */
    public double ns() {
        return Math.max(pathNs, Math.max(linkNs, computeNs));
    }
}
