package dev.weft.gemm;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;

/**
 * The innermost product: a few rows of A times one panel of B, with every sum in a register of its
 * own. A kernel sees only full tiles, because its operands are padded. It has no state, and any
 * thread may call it.
 *
 * <p>What every kernel must keep, or vectors turn into heap objects and the product runs a hundred
 * times slower: sums are local variables, each set on its own, never kept in an array, a field or a
 * constant; and the method stays small with all that is inlined into it. Measured on JDK 25: the
 * largest kernel here comes to 5500 bytecodes; one of some 8000 was compiled with boxed vectors.
 */
abstract class MicroKernel {

    /** Columns of A, and rows of B, per call at most; also the pitch of packed rows of A. */
    static final int DEPTH = 512;

    /** The kernel for the widest vectors of this machine. */
    static MicroKernel preferred() {
        return FloatVector.SPECIES_PREFERRED.vectorBitSize() == 512
                ? new Kernel8x3()
                : new Kernel4x2();
    }

    /** Rows of a tile. */
    abstract int rows();

    /** Columns of a tile, and of a panel of B. */
    abstract int cols();

    /** Bits of one vector. */
    abstract int vectorBits();

    /**
     * Continues the sums of one tile: for k = 0 .. depth-1 in this order, one fused multiply-add of
     * each pair.
     *
     * @param a rows of A, {@link #DEPTH} apart, from index {@code aFrom} on
     * @param b holds a panel of B from byte {@code bOffset} on
     * @param sums the tile, its rows {@code pitch} apart, from index {@code sumsFrom} on
     */
    abstract void accumulate(
            float[] a,
            int aFrom,
            MemorySegment b,
            long bOffset,
            int depth,
            float[] sums,
            int sumsFrom,
            int pitch);
}
