package dev.weft.gemm;

import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/**
 * An engine that multiplies rows of A with a packed B. Engines hold no state: any thread may call
 * them, each with a {@link Scratch} of its own.
 */
public interface Gemm {

    /** {@code scalar} or {@code vector}, and the vector width where there is one. */
    String name();

    /** Rows are computed in multiples of this without waste. */
    int rowQuantum();

    /** Rows per {@link #multiply} from which on the engine runs at its full rate. */
    long blockRows();

    /**
     * Copies B into the layout that this engine reads, converted to fp32.
     *
     * @param b [K, N], or [N, K] where {@code transposed}
     */
    PackedB pack(Matrix b, boolean transposed, Arena arena);

    /**
     * Working memory for one thread and products of up to {@code k} columns of A with {@code n} of
     * B.
     */
    Scratch scratch(long k, long n, Arena arena);

    /**
     * Computes {@code rows} rows of C from as many rows of A. Allocates nothing on the heap.
     *
     * @param a [any, K], rows from {@code aRow} on
     * @param b packed by this engine
     * @param c [any, N] of any type, rows from {@code cRow} on are overwritten
     */
    void multiply(Matrix a, long aRow, long rows, PackedB b, Matrix c, long cRow, Scratch scratch);

    /** Refuses operands that do not fit each other; shared by all engines. */
    static void check(Matrix a, long aRow, long rows, PackedB b, Matrix c, long cRow) {
        if (a.cols() != b.k() || c.cols() != b.n()) {
            throw new IllegalArgumentException(
                    "cannot multiply "
                            + a.describe()
                            + " by a packed ["
                            + b.k()
                            + ", "
                            + b.n()
                            + "] into "
                            + c.describe());
        }
        if (aRow < 0 || cRow < 0 || rows < 0 || aRow > a.rows() - rows || cRow > c.rows() - rows) {
            throw new IllegalArgumentException(
                    rows
                            + " rows from row "
                            + aRow
                            + " of "
                            + a.describe()
                            + " into row "
                            + cRow
                            + " of "
                            + c.describe()
                            + " lie outside");
        }
    }
}
