package dev.weft.plan;

/** A way to gather or to sum: it writes the plans of all ranks. Pure and thread-safe. */
public interface PlanWriter {

    /** The name on the command line, in plans and in run records. */
    String label();

    /**
     * Whether all ranks do the same, given equal shards and equal hosts: the plan of rank {@code r
     * + s} is that of rank r with s added to all rank numbers, for every s that is a multiple of
     * the ranks per host. The order of products after a complete gather does not matter. One rank's
     * times then stand for all in a simulation.
     */
    default boolean isSymmetric() {
        return false;
    }
}
