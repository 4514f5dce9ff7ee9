package dev.weft.exec.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.data.NormalData;
import java.util.Random;
import java.util.function.DoubleUnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class ActivationsTest {

    private static final double MOST_ULPS = 0.6;

    private enum Function {
        SILU(x -> x < 0 ? x * exp(x) / (1 + exp(x)) : x / (1 + exp(-x))),
        GELU(x -> x * distribution(x)),
        GELU_TANH(ActivationsTest::tanhForm);

        private final DoubleUnaryOperator reference;

        Function(DoubleUnaryOperator reference) {
            this.reference = reference;
        }

        void apply(float[] values, int count) {
            Activations activations = new Activations();
            switch (this) {
                case SILU -> activations.silu(values, count);
                case GELU -> activations.gelu(values, count);
                case GELU_TANH -> activations.geluTanh(values, count);
            }
        }

        float of(float value) {
            float[] one = {value};
            apply(one, 1);
            return one[0];
        }
    }

    private static double exp(double x) {
        return StrictMath.exp(x);
    }

    private static double tanhForm(double x) {
        double twice = 2 * StrictMath.sqrt(2 / StrictMath.PI) * (x + 0.044715 * x * x * x);
        return x < 0 ? x * exp(twice) / (1 + exp(twice)) : x / (1 + exp(-twice));
    }

    /** The normal distribution function: a series near zero, a continued fraction in the tail. */
    private static double distribution(double x) {
        double t = Math.abs(x);
        double density = exp(-t * t / 2) / StrictMath.sqrt(2 * StrictMath.PI);
        double tail;
        if (t < 2) {
            double term = t;
            double sum = 0;
            for (int k = 1; k < 120; k++) {
                sum += term;
                term *= t * t / (2 * k + 1);
            }
            tail = 0.5 - density * sum;
        } else {
            double fraction = t;
            for (int k = 400; k > 0; k--) {
                fraction = t + k / fraction;
            }
            tail = density / fraction;
        }
        return x < 0 ? tail : 1 - tail;
    }

    /** Every exponent, both signs, results in the denormal range included. */
    @ParameterizedTest
    @EnumSource
    void resultsAreWithinTheirBound(Function function) {
        Random random = new Random(7);
        float[] inputs = new float[Activations.PIECE];
        for (int round = 0; round < 400; round++) {
            for (int i = 0; i < inputs.length; i++) {
                inputs[i] =
                        switch (round % 3) {
                            case 0 -> (float) (random.nextGaussian() * 3);
                            case 1 -> -random.nextFloat() * 110;
                            default -> Float.intBitsToFloat(random.nextInt());
                        };
            }
            float[] outputs = inputs.clone();
            function.apply(outputs, outputs.length);
            for (int i = 0; i < inputs.length; i++) {
                requireClose(function, inputs[i], outputs[i]);
            }
        }
    }

    private static void requireClose(Function function, float input, float actual) {
        if (Float.isNaN(input)) {
            assertTrue(Float.isNaN(actual), () -> function + " of NaN is " + actual);
            return;
        }
        double expected =
                Float.isInfinite(input) ? limit(input) : function.reference.applyAsDouble(input);
        if (Double.isNaN(expected) || Double.isInfinite(expected)) {
            // The reference overflows on its way; so far out, the function is 0 or its argument.
            expected = limit(input);
        }
        double ulps = Math.abs(actual - expected) / Math.ulp((float) expected);
        if (actual != (float) expected && !(ulps <= MOST_ULPS)) {
            throw new AssertionError(
                    "%s of %s is %s: expected %s, %s ulps away"
                            .formatted(function, input, actual, expected, ulps));
        }
    }

    private static double limit(float input) {
        return input < 0 ? -0.0 : input;
    }

    @ParameterizedTest
    @EnumSource
    void zerosAndInfinitiesKeepTheirSigns(Function function) {
        assertEquals(0f, function.of(0f));
        assertEquals(-0f, function.of(-0f));
        assertEquals(Float.POSITIVE_INFINITY, function.of(Float.POSITIVE_INFINITY));
        assertEquals(-0f, function.of(Float.NEGATIVE_INFINITY));
        assertEquals(Float.MAX_VALUE, function.of(Float.MAX_VALUE));
        assertEquals(-0f, function.of(-Float.MAX_VALUE));
        // Half of the smallest denormal is a tie, which goes to even.
        assertEquals(0f, function.of(Float.MIN_VALUE));
        assertEquals(Float.MIN_VALUE, function.of(2 * Float.MIN_VALUE));
    }

    /** Bits do not depend on which values are done together, nor on how far code is compiled. */
    @ParameterizedTest
    @EnumSource
    void bitsAreTheSameForAnyPieces(Function function) {
        Random random = new Random(3);
        float[] inputs = new float[Activations.PIECE];
        for (int i = 0; i < inputs.length; i++) {
            inputs[i] = (float) (random.nextGaussian() * 5);
        }
        for (int round = 0; round < 200; round++) {
            float[] all = inputs.clone();
            function.apply(all, all.length);
            int at = random.nextInt(inputs.length);
            assertEquals(all[at], function.of(inputs[at]));
        }
    }

    /** Found on a Neoverse N1: other machines give the same bits. */
    @ParameterizedTest
    @CsvSource({"SILU, -1106502327", "GELU, 759055541", "GELU_TANH, 1334515862"})
    void bitsAreTheSameOnEveryMachine(Function function, int hash) {
        NormalData data = new NormalData(19, 0);
        int found = 1;
        for (int round = 0; round < 16; round++) {
            float[] values = new float[Activations.PIECE];
            for (int i = 0; i < values.length; i++) {
                values[i] = (round + 1) * data.value((long) round * values.length + i);
            }
            function.apply(values, values.length);
            for (float value : values) {
                found = 31 * found + Float.floatToRawIntBits(value);
            }
        }
        assertEquals(hash, found);
    }

    @Test
    void reluGivesPlusZeroAndKeepsNaN() {
        float[] values = {
            -0f, -1f, Float.NEGATIVE_INFINITY, 2f, Float.POSITIVE_INFINITY, Float.NaN
        };
        Activations.relu(values, values.length);
        float[] expected = {0f, 0f, 0f, 2f, Float.POSITIVE_INFINITY, Float.NaN};
        for (int i = 0; i < values.length; i++) {
            assertEquals(expected[i], values[i]);
        }
    }

    @Test
    void siluTimesIsRoundedOnce() {
        Random random = new Random(5);
        float[] gate = new float[Activations.PIECE];
        float[] up = new float[Activations.PIECE];
        for (int i = 0; i < gate.length; i++) {
            gate[i] = (float) (random.nextGaussian() * 4);
            up[i] = (float) (random.nextGaussian() * 4);
        }
        float[] results = gate.clone();
        new Activations().siluTimes(results, up, results.length);
        for (int i = 0; i < results.length; i++) {
            double expected = Function.SILU.reference.applyAsDouble(gate[i]) * up[i];
            double ulps = Math.abs(results[i] - expected) / Math.ulp((float) expected);
            assertTrue(ulps <= MOST_ULPS, ulps + " ulps");
        }
    }
}
