package dev.weft.gemm;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * The product by the identity, of which nothing is stored: C becomes A, or C + A if the product
 * goes on. So sums over ranks without a product are the same plans, run by the same executor.
 * Stateless and thread-safe.
 */
final class IdentityGemm implements Gemm {

    static final IdentityGemm IDENTITY = new IdentityGemm();

    /** A cache line of fp32. */
    private static final int COL_QUANTUM = 16;

    /** Rows of a usual width stay in a near cache. */
    private static final long BLOCK_ROWS = 64;

    private IdentityGemm() {}

    /** What widens and adds, and a row. */
    static final class Row implements Scratch {

        private final RowConverter converter = new RowConverter();
        private final RowAdder adder = new RowAdder();
        private final MemorySegment wide;

        private Row(long cols, Arena arena) {
            wide = Matrix.allocate(arena, DType.FP32, 1, cols).data();
        }
    }

    @Override
    public String name() {
        return "identity";
    }

    @Override
    public int rowQuantum() {
        return 1;
    }

    @Override
    public int colQuantum() {
        return COL_QUANTUM;
    }

    @Override
    public long blockRows() {
        return BLOCK_ROWS;
    }

    @Override
    public long packedBytes(long k, long n, DType type) {
        return 0;
    }

    /** Knows N alone. */
    @Override
    public PackedB packed(long k, long n, DType type, MemorySegment memory) {
        return new PackedB(0, n, COL_QUANTUM, 1, DType.FP32, false, memory);
    }

    @Override
    public Scratch scratch(long k, long n, Arena arena) {
        return new Row(n, arena);
    }

    @Override
    public void multiply(
            Matrix a,
            long aRow,
            long rows,
            PackedB b,
            long firstCol,
            long cols,
            boolean resume,
            Matrix c,
            long cRow,
            Scratch scratch) {
        Row own = Scratch.of(Row.class, scratch, name());
        for (long row = 0; row < rows; row++) {
            own.converter.widen(a, aRow + row, firstCol, cols, own.wide, 0);
            if (resume) {
                long to = c.offset(cRow + row, firstCol);
                own.adder.add(c.data(), to, own.wide, 0, c.data(), to, cols);
            } else {
                own.converter.narrow(own.wide, 0, cols, c, cRow + row, firstCol);
            }
        }
    }
}
