package dev.weft.op;

import dev.weft.fabric.Fabric;

/**
 * C = sum over the ranks of A_r x B_r on the CPU. Every rank gets all of C. Rank r has A_r, [M, its
 * K], and B_r, [its K, N]; M and K may be cut unevenly, and a part may be empty.
 *
 * <p>By default the result has the bits of the product of all of A and B on one rank, for any
 * number of ranks, any cut of K, any chunks and any order of arrival ({@link
 * dev.weft.plan.Reduction.Order#WHOLE}), unless the engine promises less ({@link
 * #sameBitsForAnyRows}). It is rounded once, at the end. A call allocates nothing on the heap
 * (between hosts, almost nothing). A rank may be one whole call ahead of a slow peer; there is no
 * barrier.
 */
public final class MatmulAllReduce extends HostOperator {

    MatmulAllReduce(Parts parts) {
        super(parts);
    }

    /** Starts to describe an operator on the ranks of {@code fabric}. */
    public static MatmulReduceBuilder<MatmulAllReduce> on(Fabric fabric) {
        return new MatmulReduceBuilder<>(fabric, true, MatmulAllReduce::new);
    }
}
