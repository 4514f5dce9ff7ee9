package dev.weft.gemm.code;

import static java.nio.ByteOrder.LITTLE_ENDIAN;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.gemm.code.Arguments.Name;
import dev.weft.gemm.code.EpilogueCode.Step;
import dev.weft.tensor.data.NormalData;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.function.DoubleUnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

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
            apply(new Activations(), values, count);
        }

        void apply(Activations activations, float[] values, int count) {
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
        for (int round = 0; round < 400; round++) {
            float[] inputs = inputs(random, round);
            float[] outputs = inputs.clone();
            function.apply(outputs, outputs.length);
            for (int i = 0; i < inputs.length; i++) {
                requireClose(function, inputs[i], outputs[i]);
            }
        }
    }

    private static float[] inputs(Random random, int round) {
        float[] inputs = new float[Activations.PIECE];
        for (int i = 0; i < inputs.length; i++) {
            inputs[i] =
                    switch (round % 3) {
                        case 0 -> (float) (random.nextGaussian() * 3);
                        case 1 -> -random.nextFloat() * 110;
                        default -> Float.intBitsToFloat(random.nextInt());
                    };
        }
        return inputs;
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

    /** Machine code for each kind of processor, with values that end at a page nobody may touch. */
    @ParameterizedTest
    @ValueSource(strings = {"avx2", "avx512", "neon"})
    void machineCodeGivesTheBitsOfTheLoops(String kind) {
        for (Step step : Activations.FUNCTIONS) {
            requireSameBits(kind, List.of(step));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"avx2", "avx512", "neon"})
    void machineCodeOfSeveralStepsRoundsEachOfThem(String kind) {
        requireSameBits(kind, List.of(Step.BIAS));
        requireSameBits(kind, List.of(Step.RELU));
        requireSameBits(kind, List.of(Step.BIAS, Step.RELU, Step.RESIDUAL));
        requireSameBits(kind, List.of(Step.BIAS, Step.GELU, Step.RESIDUAL));
        requireSameBits(kind, List.of(Step.SILU_TIMES, Step.BIAS, Step.RESIDUAL));
        requireSameBits(kind, List.of(Step.RESIDUAL, Step.GELU_TANH, Step.BIAS, Step.SILU));
    }

    private static void requireSameBits(String kind, List<Step> steps) {
        KernelMachine machine = kind.equals("neon") ? KernelMachine.A64 : KernelMachine.X86;
        String feature = kind.equals("avx512") ? "avx512f" : kind.equals("neon") ? "asimd" : kind;
        Optional<String> missing = machine.unavailable(feature);
        assumeTrue(missing.isEmpty(), () -> missing.orElseThrow());
        EpilogueWriter.Written written = EpilogueCode.writer(kind).write(steps);
        int count = Activations.PIECE;
        for (int round = 0; round < 6; round++) {
            // Source, factors, bias and residual, one after the other.
            float[] operands = new float[4 * count];
            for (int i = 0; i < 4; i++) {
                float[] part = inputs(new Random(10 * round + i), i == 0 ? round : i % 2);
                System.arraycopy(part, 0, operands, i * count, count);
            }
            long[] arguments = new long[Name.values().length];
            arguments[Name.COUNT.ordinal()] = count;
            arguments[Name.FACTORS.ordinal()] = 4L * count;
            arguments[Name.BIAS.ordinal()] = 8L * count;
            arguments[Name.RESIDUAL.ordinal()] = 12L * count;
            byte[] found =
                    machine.run(
                            written.code(),
                            0,
                            bytes(operands),
                            written.table(),
                            new byte[4 * count],
                            arguments);
            float[] expected = Arrays.copyOf(operands, count);
            for (Step step : steps) {
                apply(step, expected, operands);
            }
            for (int i = 0; i < count; i++) {
                float one = ByteBuffer.wrap(found).order(LITTLE_ENDIAN).getFloat(4 * i);
                // Bits of NaN are not specified.
                assertEquals(
                        Float.floatToIntBits(expected[i]),
                        Float.floatToIntBits(one),
                        steps + " of " + operands[i]);
            }
        }
    }

    private static void apply(Step step, float[] values, float[] operands) {
        int count = values.length;
        switch (step) {
            case BIAS, RESIDUAL -> {
                int from = step == Step.BIAS ? 2 * count : 3 * count;
                for (int i = 0; i < count; i++) {
                    values[i] += operands[from + i];
                }
            }
            case RELU -> Activations.relu(values, count);
            default -> {
                float[] factors = Arrays.copyOfRange(operands, count, 2 * count);
                new ActivationLoops().apply(step, values, factors, count);
            }
        }
    }

    private static byte[] bytes(float[] values) {
        ByteBuffer bytes = ByteBuffer.allocate(values.length * Float.BYTES).order(LITTLE_ENDIAN);
        bytes.asFloatBuffer().put(values);
        return bytes.array();
    }

    /** The bits of any count of values, also one that ends within a vector. */
    @ParameterizedTest
    @EnumSource
    void machineCodeReplacesJustItsValues(Function function) {
        assumeTrue(EpilogueCode.of(List.of()) != null, "no machine code");
        for (int count = 1; count < 40; count++) {
            float[] found = inputs(new Random(count), 0);
            float[] expected = found.clone();
            function.apply(new Activations(true), found, count);
            function.apply(new Activations(false), expected, count);
            assertArrayEquals(expected, found, count + " values");
        }
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
