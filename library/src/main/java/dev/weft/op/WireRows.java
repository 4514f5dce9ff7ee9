package dev.weft.op;

import dev.weft.gemm.RowAdder;
import dev.weft.gemm.RowConverter;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;

/**
 * Rows of sums that travel in a smaller type than fp32: rounds them before they are sent, and adds
 * them in fp32 when they arrive. Not thread-safe.
 */
final class WireRows {

    private final RowConverter converter = new RowConverter();
    private final RowAdder adder = new RowAdder();

    /** A row in the type that travels. */
    private final Matrix rounded;

    private final MemorySegment sums;
    private final MemorySegment addends;

    WireRows(DType type, long cols) {
        int count = Math.toIntExact(cols);
        MemorySegment row = MemorySegment.ofArray(new byte[count * type.bytes()]);
        this.rounded = Matrix.of(row, type, 1, cols);
        this.sums = MemorySegment.ofArray(new float[count]);
        this.addends = MemorySegment.ofArray(new float[count]);
    }

    /**
     * Rounds a row of fp32 sums in place.
     *
     * @param packed whether its elements are stored in the smaller type, from the row's first byte
     *     on; otherwise they stay fp32
     */
    void round(Matrix source, long row, boolean packed) {
        long at = source.offset(row, 0);
        converter.narrow(source.data(), at, source.cols(), rounded, 0, 0);
        if (packed) {
            MemorySegment.copy(rounded.data(), 0, source.data(), at, rounded.rowBytes());
        } else {
            converter.widen(rounded, 0, 0, source.cols(), source.data(), at);
        }
    }

    /** Adds a row of any type to the sums, or starts them with it. */
    void add(Matrix source, long row, boolean first) {
        converter.widen(source, row, 0, source.cols(), first ? sums : addends, 0);
        if (!first) {
            adder.add(sums, 0, addends, 0, sums, 0, source.cols());
        }
    }

    /** Writes the sums to a row of fp32. */
    void store(Matrix target, long row) {
        MemorySegment.copy(sums, 0, target.data(), target.offset(row, 0), target.rowBytes());
    }
}
