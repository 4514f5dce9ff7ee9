package dev.weft.compat;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.fabric.Fabric;
import dev.weft.op.Operator;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * The fused ring of the all-gather + matmul tutorial, prepared once and called many times. Rank r
 * holds A's rows [m, K] and B's columns [K, N_local]; every call gives it [R, m, N_local], where
 * slot s is the rows of rank s times its own columns.
 *
 * <p>Fragments of A are kept in two ping-pong buffers. Step i multiplies the fragment of rank
 * {@code (r - i) mod R} while the same fragment is permuted to the successor's other buffer; there
 * are R - 1 permutes, in one direction. Gathered A is never stored. Any number of ranks forms a
 * ring; one rank is a ring without permutes.
 *
 * <p>Sums are fp32; the output has the type of the inputs (fp32 if A's and B's differ), and is
 * bitwise the unfused product. Collective; used by one thread at a time.
 *
 * @param <M> the type of matrix: {@link Matrix} in host memory, or {@link DeviceMatrix} on a GPU
 */
public final class RingAllGatherMatmul<M> extends PreparedRing<M> {

    private RingAllGatherMatmul(Operator<M> operator) {
        super(operator);
    }

    /** Prepares the ring in host memory, with one program per rank. B may be freed afterwards. */
    public static RingAllGatherMatmul<Matrix> prepare(
            Fabric fabric, long m, DType aType, Matrix b) {
        return prepare(Place.HOST, fabric, m, aType, b, 1);
    }

    /**
     * Prepares the ring on all ranks of {@code fabric}. Collective. On a GPU, B must stay
     * allocated.
     *
     * @param m rows of A on each rank, the same on all
     * @param aType the type of A
     * @param b this rank's columns of B, [K, N_local]
     * @param lnc logical-core programs per rank, 1 or 2: each multiplies its half of a fragment's
     *     rows, and a permute moves the halves one after the other
     */
    public static <M> RingAllGatherMatmul<M> prepare(
            Place<M> place, Fabric fabric, long m, DType aType, M b, int lnc) {
        int ranks = fabric.size();
        // One permute carries a whole fragment, as in the tutorial, or each program's part of it.
        return new RingAllGatherMatmul<>(
                place.operator(fabric)
                        .a(Shards.even(Math.multiplyExact(m, (long) ranks), ranks), aType)
                        .b(b)
                        .output(DType.promote(aType, place.size(b).dtype()))
                        .pingPong()
                        .algorithm(Algorithm.slicedRing(FgccConfig.checkedLnc(lnc), 1, false))
                        .splitsPerRank(lnc)
                        .prepare());
    }

    /**
     * One pass round the ring. Collective. The output is valid until the next call starts.
     *
     * @param shard this rank's rows of A, [m, K]
     * @return [R, m, N_local] as [R * m, N_local]: slot s is the m rows from row s * m on
     */
    public M call(M shard) {
        return operator.call(shard).product();
    }
}
