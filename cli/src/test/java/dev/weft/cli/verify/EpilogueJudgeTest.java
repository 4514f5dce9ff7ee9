package dev.weft.cli.verify;

import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.data.EpilogueData;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class EpilogueJudgeTest {

    private static Matrix random(DType type, long rows, long cols, long stream) {
        Matrix matrix = Matrix.allocate(Arena.ofAuto(), type, rows, cols);
        new NormalData(3, stream).fill(matrix);
        return matrix;
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "bias",
                "relu",
                "gelu",
                "gelu-tanh",
                "silu",
                "residual,gelu,bias",
                "bias,silu",
                "bias,swiglu,residual"
            })
    void rightResultsAreAcceptedAndWrongOnesAreNot(String text) {
        int products = text.contains("swiglu") ? 2 : 1;
        Matrix sums = random(DType.FP32, 9, 40 * products, 0);
        sums.set(1, 1, Float.NEGATIVE_INFINITY);
        sums.set(2, 2, Float.NaN);
        sums.set(3, 3, -90);
        Matrix bias = random(DType.BF16, 1, 40, 1);
        Matrix residual = random(DType.FP16, 9, 40, 2);
        EpilogueData data = new EpilogueData(text, bias, residual);
        for (DType type : DType.UNSCALED) {
            Matrix results = data.finished(sums, type, Arena.ofAuto());
            double worst = new EpilogueJudge(data).worst(sums, results);
            assertTrue(worst <= 1, text + " " + type + " " + worst);
            float right = results.get(5, 7);
            results.set(5, 7, right + (float) (0.01 + Math.abs(right) * 0.02));
            assertTrue(new EpilogueJudge(data).worst(sums, results) > 1, text + " " + type);
            results.set(5, 7, Float.NaN);
            assertTrue(new EpilogueJudge(data).worst(sums, results) > 1, text + " " + type);
        }
    }
}
