package dev.weft.op;

import dev.weft.fabric.Fabric;

/**
 * C = allgather(A) x B on the CPU.
 *
 * <p>The result is bitwise the unfused product, whatever the algorithm, the chunks, the number of
 * ranks and the order of arrival, unless the engine promises less ({@link #sameBitsForAnyRows}).
 * Ranks that share memory and give the same B share one packed copy of it. A call allocates nothing
 * on the heap (between hosts, almost nothing). A rank may be one whole call ahead of a slow peer;
 * there is no barrier.
 */
public final class AllGatherMatmul extends HostOperator {

    AllGatherMatmul(Parts parts) {
        super(parts);
    }

    /** Starts to describe an operator on the ranks of {@code fabric}. */
    public static AllGatherMatmulBuilder on(Fabric fabric) {
        return new AllGatherMatmulBuilder(fabric);
    }
}
