package dev.weft.exec.host;

import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.LargePages;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.gemm.RowAdder;
import dev.weft.gemm.Scratch;
import dev.weft.plan.group.RowGroups;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Multiplies rows by the Bs of the groups that they are in. Either A has the rows of the call, and
 * the result those of one group after the other; or the other way round, and a row's products are
 * added up by their weights, in the order of the groups. Allocates nothing in a call. For one
 * thread.
 */
final class GroupedRows {

    /** Enough for the products of a block of 512 rows with 4 experts and 1024 columns. */
    private static final long AHEAD_BYTES = 8 << 20;

    private final Transport fabric;
    private final Gemm gemm;
    private final Products products;
    private final RowGroups groups;
    private final RowAdder adder = new RowAdder();

    /** Rows of A that are multiplied at a time, or products that are added next. */
    private final Matrix block;

    /** Products that wait for the sums that they are added to; none if nothing is added. */
    private final Matrix ahead;

    private int multipliedAhead;

    /**
     * @param mostRows the most rows of a product
     */
    GroupedRows(Transport fabric, Products products, DType aType, long mostRows, Arena arena) {
        this.fabric = fabric;
        this.gemm = products.gemm();
        this.products = products;
        this.groups = products.grouped().rows();
        boolean added = products.grouped().added();
        DType type = added || aType.isScaled() ? DType.FP32 : aType;
        long rows = Math.clamp(mostRows, 1, gemm.blockRows());
        long cols = added ? products.widest() : products.deepest();
        long bytes = Matrix.contiguousBytes(type, rows, cols);
        this.block = Matrix.of(LargePages.allocate(bytes, arena), type, rows, cols);
        long fits = AHEAD_BYTES / Float.BYTES / Math.max(1, cols);
        long most = added ? Math.min(fits, mostRows * groups.groups()) : 0;
        this.ahead =
                Matrix.of(
                        LargePages.allocate(most * cols * Float.BYTES, arena),
                        DType.FP32,
                        most,
                        cols);
    }

    /**
     * Multiplies those of {@code rows} rows that are in a group, into the group's rows of the
     * result.
     *
     * @param widened makes fp32 of an A with scales; else null
     * @param callRow the first row, in the whole A of the call
     * @param piece which group, and which part of its columns
     * @param finished finishes what is multiplied; null if it is only rounded
     */
    void split(
            Matrix a,
            WidenedRows widened,
            long aRow,
            long callRow,
            long rows,
            int piece,
            int call,
            FinishedRows finished,
            Scratch scratch) {
        if (groups.groups() == 0) {
            return;
        }
        int group = piece / products.columnParts();
        int part = piece % products.columnParts();
        int end = groups.from(group, callRow + rows);
        Product product = products.results().get(group);
        Matrix c = product.c(call);
        long firstCol = products.firstCol(group, part);
        long cols = products.firstCol(group, part + 1) - firstCol;
        for (int i = groups.from(group, callRow); i < end; ) {
            int count = (int) Math.min(block.rows(), end - i);
            for (int row = 0; row < count; row++) {
                long from = aRow + groups.row(i + row) - callRow;
                if (widened == null) {
                    MemorySegment.copy(
                            a.data(),
                            a.offset(from, 0),
                            block.data(),
                            block.offset(row, 0),
                            block.rowBytes());
                } else {
                    widened.into(a, from, block, row);
                }
            }
            if (finished != null) {
                finished.multiply(group, block, 0, count, firstCol, cols, c, i, scratch);
            } else {
                gemm.multiply(block, 0, count, product.b(), firstCol, cols, c, i, scratch);
            }
            fabric.worked();
            i += count;
        }
    }

    /**
     * Multiplies what the groups have of {@code rows} rows, as much as there is room for, before
     * the sums have come that {@link #combine} adds it to: only the addition needs them.
     */
    void multiplyAhead(Matrix h, long callRow, long rows, int part, Scratch scratch) {
        long firstCol = products.firstCol(0, part);
        long cols = products.firstCol(0, part + 1) - firstCol;
        int done = 0;
        for (int group = 0; group < groups.groups() && done < ahead.rows(); group++) {
            int end = groups.from(group, callRow + rows);
            for (int i = groups.from(group, callRow); i < end && done < ahead.rows(); ) {
                int count = (int) Math.min(block.rows(), Math.min(end - i, ahead.rows() - done));
                PackedB b = products.ofGroup(group);
                gemm.multiply(h, i, count, b, firstCol, cols, ahead, done, scratch);
                fabric.worked();
                i += count;
                done += count;
            }
        }
        multipliedAhead = done;
    }

    /**
     * Multiplies what the groups have of {@code rows} rows, and adds each product times its weight
     * to the row's sums.
     *
     * @param h one group's rows below the other's
     * @param callRow the first row, in the whole C of the call
     * @param resume whether sums go on from what is there; otherwise they start from zero
     */
    void combine(
            Matrix h,
            Matrix sums,
            long sumsRow,
            long callRow,
            long rows,
            boolean resume,
            int part,
            Scratch scratch) {
        long firstCol = products.firstCol(0, part);
        long cols = products.firstCol(0, part + 1) - firstCol;
        for (long row = 0; !resume && row < rows; row++) {
            long at = sums.offset(sumsRow + row, firstCol);
            sums.data().asSlice(at, cols * Float.BYTES).fill((byte) 0);
        }
        int added = 0;
        for (int group = 0; group < groups.groups(); group++) {
            int end = groups.from(group, callRow + rows);
            for (int i = groups.from(group, callRow); i < end; ) {
                boolean isAhead = added < multipliedAhead;
                int count =
                        isAhead
                                ? Math.min(multipliedAhead - added, end - i)
                                : (int) Math.min(block.rows(), end - i);
                if (!isAhead) {
                    PackedB b = products.ofGroup(group);
                    gemm.multiply(h, i, count, b, firstCol, cols, block, 0, scratch);
                    fabric.worked();
                }
                for (int row = 0; row < count; row++) {
                    Matrix from = isAhead ? ahead : block;
                    adder.addTimes(
                            groups.weight(i + row),
                            from.data(),
                            from.offset(isAhead ? added + row : row, firstCol),
                            sums.data(),
                            sums.offset(sumsRow + groups.row(i + row) - callRow, firstCol),
                            cols);
                }
                i += count;
                added += isAhead ? count : 0;
            }
        }
        multipliedAhead = 0;
    }
}
