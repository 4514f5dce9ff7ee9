package dev.weft.sim;

/** Multiplies on one simulated rank as chunks arrive. */
interface ProductRun {

    void start();

    /** A chunk has come to this rank. */
    void arrived(int tag);

    /** The least time in which this rank can do its products, by its engine alone. */
    double leastNs();

    /** The longest chain of transfers that ends in one of its products. */
    double pathNs();
}
