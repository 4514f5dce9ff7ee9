package dev.weft.cuda.kernel;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.kernel.RowRange.Piece;
import dev.weft.tensor.DType;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Which rows the library multiplies in one call. */
class CublasProductTest {

    /** Two shards of one gathered A: 100 and 50 rows of 64. */
    private static final DeviceMatrix FIRST = new DeviceMatrix(4096, DType.FP16, 100, 64, 64);

    private static final DeviceMatrix SECOND =
            new DeviceMatrix(4096 + 100 * 128, DType.FP16, 50, 64, 64);

    private static RowRange there(int source, long sourceRow, long row, long rows) {
        return new RowRange(source, sourceRow, row, rows, List.of(), false);
    }

    private static RowRange coming(int source, long sourceRow, long row, long rows, int flag) {
        Piece piece = new Piece(sourceRow, rows, 0, flag);
        return new RowRange(source, sourceRow, row, rows, List.of(piece), false);
    }

    @Test
    void rowsThatAreThereAndLieBehindEachOtherBecomeOne() {
        assertEquals(
                List.of(there(0, 0, 0, 150)),
                CublasProduct.merged(
                        List.of(there(0, 0, 0, 60), there(0, 60, 60, 40), there(1, 0, 100, 50)),
                        List.of(FIRST, SECOND)));
    }

    @Test
    void rowsThatArriveStayApart() {
        List<RowRange> ranges =
                List.of(there(0, 0, 0, 100), coming(1, 0, 100, 25, 0), coming(1, 25, 125, 25, 1));
        assertEquals(ranges, CublasProduct.merged(ranges, List.of(FIRST, SECOND)));
    }

    @Test
    void rowsApartInMemoryOrInTheProductStayApart() {
        DeviceMatrix elsewhere = new DeviceMatrix(1 << 20, DType.FP16, 50, 64, 64);
        List<RowRange> ranges = List.of(there(0, 0, 0, 100), there(1, 0, 100, 50));
        assertEquals(ranges, CublasProduct.merged(ranges, List.of(FIRST, elsewhere)));
        List<RowRange> backwards = List.of(there(1, 0, 100, 50), there(0, 0, 0, 100));
        assertEquals(backwards, CublasProduct.merged(backwards, List.of(FIRST, SECOND)));
        List<RowRange> apart = List.of(there(0, 0, 0, 100), there(1, 0, 120, 50));
        assertEquals(apart, CublasProduct.merged(apart, List.of(FIRST, SECOND)));
    }

    @Test
    void emptyShardsAreNoProduct() {
        assertEquals(
                List.of(coming(0, 0, 0, 100, 3)),
                CublasProduct.merged(
                        List.of(there(1, 0, 0, 0), coming(0, 0, 0, 100, 3), there(1, 0, 100, 0)),
                        List.of(FIRST, SECOND)));
    }
}
