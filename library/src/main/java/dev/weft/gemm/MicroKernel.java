package dev.weft.gemm;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorSpecies;

/**
 * The innermost product: a few rows of A times one panel of B, with every sum in a register of its
 * own. A kernel sees only full tiles, because its operands are padded. It has no state, and any
 * thread may call it.
 *
 * <p>What every kernel must keep, or vectors turn into heap objects and the product runs a hundred
 * times slower: sums are local variables, each set on its own, never kept in an array, a field or a
 * constant; and a large kernel calls the Vector API directly, since the JIT compiler gives up on
 * inlining small methods of ours ("NodeCountInliningCutoff") but not on those of the API. A test
 * notices a kernel that allocates, or that stays on a slow tier.
 */
abstract class MicroKernel {

    /** Columns of A, and rows of B, per call at most; also the pitch of packed rows of A. */
    static final int DEPTH = Blocking.DEPTH;

    private final int rows;
    private final int cols;
    private final int vectorBits;

    /** Tiles have so many rows and columns; a panel of B has as many columns. */
    MicroKernel(int rows, int cols, VectorSpecies<Float> species) {
        this.rows = rows;
        this.cols = cols;
        this.vectorBits = species.vectorBitSize();
    }

    /**
     * The kernel for this machine: by its widest vectors, but on aarch64 always the one for vectors
     * of 128 bits, since machines with longer ones have as many multiply-adds in all.
     */
    static MicroKernel preferred() {
        int bits = FloatVector.SPECIES_PREFERRED.vectorBitSize();
        if (bits <= 128 || System.getProperty("os.arch").equals("aarch64")) {
            return new Kernel4x4Rotated();
        }
        return bits == 512 ? new Kernel6x4() : new Kernel4x2();
    }

    final int rows() {
        return rows;
    }

    final int cols() {
        return cols;
    }

    final int vectorBits() {
        return vectorBits;
    }

    /**
     * The kernel for a panel of which only {@code cols} columns are there: it reads the same tiles
     * and panels as this one and writes the same sums, several tiles of rows at a time, and leaves
     * out columns that are not there.
     */
    MicroKernel forCols(int cols) {
        return this;
    }

    /** The most rows that a kernel of {@link #forCols} takes at a time. */
    int mostRows() {
        return rows();
    }

    /** Floats that one packed tile of A takes, whatever its depth. */
    int packedTile() {
        return rows() * DEPTH;
    }

    /**
     * Whether rows of A are converted into a staging array, from which {@link #packTile} packs
     * them. Otherwise a packed tile is just its rows, {@link #DEPTH} apart. Rows that A does not
     * have keep what an earlier product left there: they give sums that nobody reads.
     */
    boolean stages() {
        return false;
    }

    /**
     * Packs one tile of A; only for kernels that stage.
     *
     * @param staged the tile's rows as fp32, {@link #DEPTH} apart
     * @param at where in {@code packed} the tile goes
     */
    void packTile(float[] staged, int depth, float[] packed, int at) {
        throw new UnsupportedOperationException("packed tiles are just their rows");
    }

    /**
     * Continues the sums of one tile: for k = 0 .. depth-1 in this order, one fused multiply-add of
     * each pair.
     *
     * @param a a packed tile from index {@code at} on
     * @param b holds a panel of B from byte {@code bFrom} on
     * @param sums the tile's sums from index {@code sumsFrom} on, without a gap; before the first
     *     depth they are zero, after the last one {@link #finish} puts them in order
     */
    abstract void accumulate(
            float[] a, int at, MemorySegment b, long bFrom, int depth, float[] sums, int sumsFrom);

    /** Puts the sums of what this kernel takes at a time in order, row after row. */
    void finish(float[] sums, int at) {
        // By default they are in order all the time.
    }
}
