package dev.weft.cli.verify;

import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.data.EpilogueData;
import dev.weft.op.Epilogue;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.List;
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
                "bias,swiglu,residual",
                "rmsnorm",
                "bias,residual,rmsnorm",
                "bias,gelu,layernorm",
                "swiglu,layernorm"
            })
    void rightResultsAreAcceptedAndWrongOnesAreNot(String text) {
        int products = text.contains("swiglu") ? 2 : 1;
        Matrix sums = random(DType.FP32, 9, 40 * products, 0);
        sums.set(1, 1, Float.NEGATIVE_INFINITY);
        sums.set(2, 2, Float.NaN);
        sums.set(3, 3, -90);
        Matrix bias = random(DType.BF16, 1, 40, 1);
        Matrix residual = random(DType.FP16, 9, 40, 2);
        Matrix weight = random(DType.BF16, 1, 40, 3);
        Matrix normBias = random(DType.BF16, 1, 40, 4);
        EpilogueData data = new EpilogueData(text, bias, residual, weight, normBias);
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

    /** As a wrong formula, weight or epsilon would make them. */
    @ParameterizedTest
    @ValueSource(strings = {"rmsnorm", "layernorm", "residual,rmsnorm"})
    void wrongNormsAreNotAccepted(String text) {
        boolean residual = text.startsWith("residual");
        Matrix sums = random(DType.FP32, 4, 700, 0);
        for (long row = 0; row < 4; row++) {
            for (long col = 0; col < 700; col++) {
                // So small that epsilon matters.
                sums.set(row, col, sums.get(row, col) * 0.01f);
            }
        }
        Matrix added = Matrix.allocate(Arena.ofAuto(), DType.BF16, 4, 700);
        Matrix weight = random(DType.BF16, 1, 700, 3);
        Matrix bias = random(DType.BF16, 1, 700, 4);
        EpilogueData data = new EpilogueData(text, null, residual ? added : null, weight, bias);
        Matrix other = random(DType.BF16, 1, 700, 3);
        other.set(0, 333, other.get(0, 333) * 1.02f + 0.01f);
        boolean layer = text.equals("layernorm");
        Epilogue none = Epilogue.none();
        double epsilon = EpilogueData.EPSILON;
        List<Epilogue> wrong =
                List.of(
                        norm(layer, weight, bias, 0),
                        norm(layer, weight, bias, 2 * epsilon),
                        norm(layer, other, bias, epsilon),
                        norm(!layer, weight, bias, epsilon),
                        none);
        for (DType type : DType.UNSCALED) {
            Matrix results = data.finished(sums, type, Arena.ofAuto());
            assertTrue(new EpilogueJudge(data).worst(sums, results) <= 1, text + " " + type);
            for (Epilogue each : wrong) {
                each.apply(List.of(sums), List.of(results));
                double worst = new EpilogueJudge(data).worst(sums, results);
                assertTrue(worst > 1, text + " as '" + each + "' " + type + ": " + worst);
            }
        }
    }

    private static Epilogue norm(boolean layer, Matrix weight, Matrix bias, double epsilon) {
        return layer
                ? Epilogue.none().layerNorm(weight, bias, epsilon)
                : Epilogue.none().rmsNorm(weight, epsilon);
    }
}
