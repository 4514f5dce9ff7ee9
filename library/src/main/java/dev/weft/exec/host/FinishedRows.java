package dev.weft.exec.host;

import dev.weft.gemm.Gemm;
import dev.weft.gemm.Scratch;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Multiplies rows and applies an epilogue to the sums of a block while they are in a near cache.
 * Sums are in the product itself if it has their type, and nothing else is read from there,
 * otherwise in reused memory. Allocates nothing in a call. For one thread.
 */
final class FinishedRows {

    /**
     * Columns at a time, unless whole rows are finished: as few as possible without slowing
     * products, so that sums are still in cache when they are finished.
     */
    private static final long COLS = 1024;

    private static final long ALIGNMENT_BYTES = 64;

    private final Gemm gemm;
    private final List<Product> products;
    private final PreparedEpilogue prepared;
    private final PreparedEpilogue.Scratch epilogue;
    private final boolean alike;
    private final long stepRows;
    private final long stepCols;

    /** By product; all share the same memory. */
    private final Matrix[] sums;

    private final Matrix[] seconds;

    /**
     * @param alike whether all products have the epilogue of the first, with its operands
     * @param mostRows the most rows that are multiplied at a time
     */
    FinishedRows(
            PreparedEpilogue epilogue,
            Gemm gemm,
            List<Product> products,
            boolean alike,
            long mostRows,
            Arena arena) {
        this.gemm = gemm;
        this.products = products;
        this.alike = alike;
        this.prepared = epilogue;
        this.epilogue = epilogue.new Scratch();
        this.stepRows = Math.clamp(mostRows, 1, gemm.blockRows());
        long widest = products.stream().mapToLong(product -> product.b().n()).max().orElse(0);
        this.stepCols =
                epilogue.takesWholeRows()
                        ? Math.max(1, widest)
                        : Math.ceilDiv(COLS, gemm.colQuantum()) * gemm.colQuantum();
        this.sums = sums(widest, arena);
        boolean joins = products.stream().anyMatch(product -> product.second() != null);
        this.seconds = joins ? sums(widest, arena) : new Matrix[products.size()];
    }

    private Matrix[] sums(long widest, Arena arena) {
        long bytes = Matrix.contiguousBytes(DType.FP32, stepRows, widest);
        MemorySegment memory = arena.allocate(bytes, ALIGNMENT_BYTES);
        return products.stream()
                .map(product -> Matrix.of(memory, DType.FP32, stepRows, product.b().n()))
                .toArray(Matrix[]::new);
    }

    /** Like {@link Gemm#multiply}, for all right-hand sides of a result. */
    void multiply(
            int product,
            Matrix a,
            long aRow,
            long rows,
            long firstCol,
            long cols,
            Matrix c,
            long cRow,
            Scratch scratch) {
        for (long row = 0; row < rows; row += stepRows) {
            long height = Math.min(stepRows, rows - row);
            for (long col = 0; col < cols; col += stepCols) {
                long width = Math.min(stepCols, cols - col);
                block(
                        product,
                        a,
                        aRow + row,
                        height,
                        firstCol + col,
                        width,
                        c,
                        cRow + row,
                        scratch);
            }
        }
    }

    private void block(
            int product,
            Matrix a,
            long aRow,
            long rows,
            long firstCol,
            long cols,
            Matrix c,
            long cRow,
            Scratch scratch) {
        Product sides = products.get(product);
        boolean inC =
                c.dtype() == DType.FP32 && c.cols() == sides.b().n() && !prepared.readsFrom(c);
        Matrix first = inC ? c : sums[product];
        long firstRow = inC ? cRow : 0;
        Matrix second = seconds[product];
        gemm.multiply(a, aRow, rows, sides.b(), firstCol, cols, first, firstRow, scratch);
        if (second != null) {
            gemm.multiply(a, aRow, rows, sides.second(), firstCol, cols, second, 0, scratch);
        }
        int operands = alike ? 0 : product;
        epilogue.apply(operands, first, firstRow, second, 0, rows, firstCol, cols, c, cRow);
    }
}
