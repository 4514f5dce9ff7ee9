package dev.weft.tensor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.ScaledMatrix.Scaling;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ScaledMatrixTest {

    private final Arena arena = Arena.ofAuto();

    private Matrix normal(DType dtype, long rows, long cols) {
        Matrix matrix = Matrix.allocate(arena, dtype, rows, cols);
        new NormalData(5, 0).fill(matrix);
        return matrix;
    }

    @ParameterizedTest
    @EnumSource(Scaling.class)
    void rowsThatTravelHoldScalesThenElements(Scaling scaling) {
        Matrix a = normal(DType.BF16, 5, 300);
        Matrix rows = ScaledMatrix.rowsOf(arena, a, DType.E4M3, scaling);
        assertEquals(16 + 304, rows.cols());
        ScaledMatrix view = ScaledMatrix.inRows(rows, 300, scaling);
        Matrix wide = Matrix.allocate(arena, DType.FP32, 5, 300);
        ScaledMatrix.dequantizeRows(rows, scaling, 0, 5, wide);
        assertTrue(wide.bitwiseEquals(view.dequantize(arena)));
        for (long row = 0; row < 5; row++) {
            for (long col = 0; col < 300; col++) {
                long scaleAt = scaling == Scaling.BLOCK ? col / 128 : 0;
                float scale = rows.data().get(DType.FLOAT, rows.offset(row, 0) + scaleAt * 4);
                float value = DType.E4M3.round(a.get(row, col) / scale) * scale;
                assertEquals(value, wide.get(row, col));
                assertEquals(a.get(row, col), value, Math.abs(a.get(row, col)) / 16 + scale / 512);
            }
        }
    }

    @Test
    void theLargestElementOfEachBlockIsTheTypesLargest() {
        Matrix b = normal(DType.FP32, 200, 260);
        ScaledMatrix blocks = ScaledMatrix.ofB(arena, b, false, DType.E5M2, Scaling.BLOCK);
        assertEquals(2, blocks.scales().rows());
        assertEquals(3, blocks.scales().cols());
        Matrix corner = b.block(128, 72, 256, 4);
        float scale = ScaledMatrix.largest(corner) / 57344;
        assertEquals(scale, blocks.scales().get(1, 2));
        assertEquals(57344, ScaledMatrix.largest(blocks.values().block(128, 72, 256, 4)));
        ScaledMatrix columns = ScaledMatrix.ofB(arena, b, false, DType.E4M3, Scaling.ROW);
        assertEquals(260, columns.scales().cols());
        assertEquals(448, ScaledMatrix.largest(columns.values().block(0, 200, 7, 1)));
        ScaledMatrix ofRows = ScaledMatrix.ofB(arena, b, true, DType.E4M3, Scaling.ROW);
        assertEquals(200, ofRows.scales().rows());
        assertEquals(448, ScaledMatrix.largest(ofRows.values().rows(7, 1)));
    }

    @Test
    void zerosInfinitiesAndNaNs() {
        float huge = Float.POSITIVE_INFINITY;
        Matrix a = Matrix.copyOf(arena, new float[][] {{0, 0}, {2, -huge}, {Float.NaN, 1}});
        Matrix rows = ScaledMatrix.rowsOf(arena, a, DType.E4M3, Scaling.ROW);
        Matrix back = ScaledMatrix.inRows(rows, 2, Scaling.ROW).dequantize(arena);
        assertEquals(0, back.get(0, 0));
        assertEquals(2, back.get(1, 0));
        assertEquals(-2, back.get(1, 1));
        assertTrue(Float.isNaN(back.get(2, 0)));
        assertEquals(1, back.get(2, 1));
    }

    @Test
    void scalesThatDoNotFitAreRefused() {
        Matrix values = Matrix.allocate(arena, DType.E4M3, 4, 300);
        Matrix scales = Matrix.allocate(arena, DType.FP32, 4, 2);
        String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () -> new ScaledMatrix(values, scales, 1, 128))
                        .getMessage();
        assertEquals(
                "values [4, 300] e4m3 with scales [4, 2] fp32, one for 1 x 128 elements: expected"
                        + " [4, 3]",
                message);
    }
}
