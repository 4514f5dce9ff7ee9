package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.op.AllGatherMatmul;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.Arrays;

/**
 * The fused ring of the all-gather + matmul tutorial, prepared once and called many times. Rank r
 * holds A's rows [m, K] and B's columns [K, N_local]; every call gives it [R, m, N_local], slot s
 * being the rows of rank s times its own columns.
 *
 * <p>Fragments of A live in two ping-pong buffers. Step i multiplies the fragment of rank {@code (r
 * - i) mod R} while the same fragment is permuted to the successor's other buffer; there are R - 1
 * permutes, in one direction. No gathered A is stored anywhere. Any number of ranks forms a ring;
 * one rank is a ring without permutes.
 *
 * <p>Sums are fp32; the output has the type of the inputs (fp32 where A's and B's differ), and is
 * bitwise the unfused product. Collective; one thread at a time uses it.
 */
public final class RingAllGatherMatmul extends PreparedRing {

    private RingAllGatherMatmul(AllGatherMatmul operator) {
        super(operator);
    }

    /**
     * Prepares the ring on all ranks of {@code fabric}. Collective; B may be freed afterwards.
     *
     * @param m rows of A on each rank, the same on all
     * @param aType the type of A
     * @param b this rank's columns of B, [K, N_local]
     */
    public static RingAllGatherMatmul prepare(Fabric fabric, long m, DType aType, Matrix b) {
        long[] rows = new long[fabric.size()];
        Arrays.fill(rows, m);
        return new RingAllGatherMatmul(
                AllGatherMatmul.on(fabric)
                        .a(Shards.of(rows), aType)
                        .b(b)
                        .pingPong()
                        // One permute carries a whole fragment, as in the tutorial.
                        .splitsPerRank(1)
                        .prepare());
    }

    /**
     * One pass round the ring. Collective. The output holds until the next call starts.
     *
     * @param shard this rank's rows of A, [m, K]
     * @return [R, m, N_local] as [R * m, N_local]: slot s is the m rows from row s * m on
     */
    public Matrix call(Matrix shard) {
        return operator.call(shard).product();
    }
}
