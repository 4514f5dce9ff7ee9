package dev.weft.exec.host;

import dev.weft.gemm.RowAdder;
import dev.weft.gemm.RowConverter;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Adds rows of sums, from the first addend to the last, in fp32. Addends and targets may be
 * rounded. For one thread; allocates nothing in a call.
 */
final class RowSums {

    private final RowConverter converter = new RowConverter();
    private final RowAdder adder = new RowAdder();

    /** A few rows: the sums, and an addend that was widened. */
    private final Matrix sums;

    private final MemorySegment addend;

    RowSums(long rows, long cols, Arena arena) {
        this.sums = Matrix.allocate(arena, DType.FP32, rows, cols);
        this.addend = Matrix.allocate(arena, DType.FP32, 1, cols).data();
    }

    /** Where rows are added up. */
    Matrix sums() {
        return sums;
    }

    /**
     * Adds one row of each of {@code count} addends, into row {@code at} of {@link #sums}.
     *
     * @param rows where each addend's rows begin
     */
    void add(Matrix[] addends, long[] rows, int count, long row, long at) {
        MemorySegment target = sums.data();
        long to = sums.offset(at, 0);
        long cols = sums.cols();
        for (int i = 0; i < count; i++) {
            Matrix next = addends[i];
            if (i == 0) {
                converter.widen(next, rows[i] + row, 0, cols, target, to);
            } else if (next.dtype() == DType.FP32) {
                adder.add(target, to, next.data(), next.offset(rows[i] + row, 0), target, to, cols);
            } else {
                converter.widen(next, rows[i] + row, 0, cols, addend, 0);
                adder.add(target, to, addend, 0, target, to, cols);
            }
        }
    }

    /** Like the other one, into a row that may be where an addend was. */
    void add(Matrix[] addends, long[] rows, int count, long row, Matrix into, long intoRow) {
        boolean two =
                count == 2
                        && addends[0].dtype() == DType.FP32
                        && addends[1].dtype() == DType.FP32
                        && into.dtype() == DType.FP32;
        if (two) {
            adder.add(
                    addends[0].data(),
                    addends[0].offset(rows[0] + row, 0),
                    addends[1].data(),
                    addends[1].offset(rows[1] + row, 0),
                    into.data(),
                    into.offset(intoRow, 0),
                    into.cols());
            return;
        }
        add(addends, rows, count, row, 0);
        converter.narrow(sums.data(), 0, into.cols(), into, intoRow, 0);
    }
}
