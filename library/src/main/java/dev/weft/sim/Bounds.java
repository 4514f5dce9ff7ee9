package dev.weft.sim;

/**
 * Times that no schedule of the same transfers and products can beat, in nanoseconds.
 *
 * @param pathNs the longest chain of things of which each needs the one before
 * @param linkNs what the busiest link or bus has to carry
 * @param computeNs what the busiest rank, or cores that ranks share, have to do
 */
public record Bounds(double pathNs, double linkNs, double computeNs) {

    /** The largest of them. */
    public double ns() {
        return Math.max(pathNs, Math.max(linkNs, computeNs));
    }
}
