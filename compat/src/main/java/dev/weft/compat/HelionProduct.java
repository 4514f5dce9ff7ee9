package dev.weft.compat;

/**
 * A product of gathered A whose tiles wait for progress, and all that it depends on.
 *
 * @param a [M, K], the equal shards of the group's ranks below each other
 * @param b [K, N], or [N, K] if {@code bTransposed}
 * @param c [M, N]; the caller may leave it out where a call allocates it
 * @param splitsPerRank divides the elements of a shard
 * @param rank rows are taken from the shard after this rank's on, its own ones last
 * @param config how the product is cut, or null for the best one
 */
record HelionProduct<M, P>(
        M a,
        M b,
        boolean bTransposed,
        M c,
        P progress,
        int splitsPerRank,
        int rank,
        Helion.Config config) {}
