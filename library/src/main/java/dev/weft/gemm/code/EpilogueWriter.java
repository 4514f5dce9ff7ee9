package dev.weft.gemm.code;

import dev.weft.gemm.code.Arguments.Name;
import dev.weft.gemm.code.EpilogueCode.Step;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * Writes epilogues for vectors of doubles. A function takes memory from which the places of its
 * operands count, a table of constants, memory of the target, and {@link Arguments}: the places,
 * and the number of elements, a multiple of {@link Written#step}. The source may be the target.
 *
 * <p>Activations are the operations of {@link ActivationLoops} in their order, so the bits are the
 * same. So are those of fp32 sums: a double has more than twice the digits of a float and two, so
 * that rounding to it first changes nothing.
 */
abstract class EpilogueWriter {

    // Numbers of registers, of which there is one for each of these vectors.
    private static final int X = 0;
    private static final int MAGNITUDE = 1;
    private static final int EXPONENT = 2;
    private static final int POWER = 3;
    private static final int SUM = 4;
    private static final int U = 5;
    private static final int R = 6;

    /** For operations of more than one instruction. */
    static final int FREE = 7;

    static final int REGISTERS = 8;

    private final int lanes;
    private final List<Double> constants = new ArrayList<>();

    /**
     * @param lanes doubles of a vector
     */
    EpilogueWriter(int lanes) {
        this.lanes = lanes;
    }

    /**
     * What was written.
     *
     * @param step elements that are done at a time
     * @param table the constants, each once for every lane
     */
    record Written(int step, byte[] code, byte[] table) {}

    /** A function, at the start of the code, that does these steps one after the other. */
    final Written write(List<Step> steps) {
        function(
                () -> {
                    widen(X, Name.SOURCE);
                    for (int i = 0; i < steps.size(); i++) {
                        if (i > 0) {
                            round(X);
                        }
                        step(steps.get(i));
                    }
                    narrowTarget(X);
                });
        ByteBuffer table =
                ByteBuffer.allocate(constants.size() * lanes * Double.BYTES)
                        .order(ByteOrder.LITTLE_ENDIAN);
        for (double constant : constants) {
            for (int i = 0; i < lanes; i++) {
                table.putDouble(constant);
            }
        }
        return new Written(lanes * vectors(), code(), table.array());
    }

    private void step(Step step) {
        switch (step) {
            case BIAS -> add(Name.BIAS);
            case RESIDUAL -> add(Name.RESIDUAL);
            case RELU -> {
                load(R, offset(0));
                atLeast(X, R);
                // For -0.
                addRegisters(X, X, R);
            }
            case SILU, SILU_TIMES, GELU, GELU_TANH -> activate(step);
        }
    }

    private void add(Name operand) {
        widen(R, operand);
        addRegisters(X, X, R);
    }

    private void activate(Step step) {
        magnitude(MAGNITUDE, X, offset(step.far));
        switch (step) {
            case GELU_TANH -> {
                multiplyRegisters(R, MAGNITUDE, MAGNITUDE);
                load(EXPONENT, offset(-ActivationLoops.TANH_CUBIC));
                multiplyAdd(EXPONENT, R, offset(-ActivationLoops.TANH_LINEAR));
                multiplyRegisters(EXPONENT, EXPONENT, MAGNITUDE);
                sigmoidTail();
            }
            case GELU -> normalTail();
            default -> {
                multiply(EXPONENT, MAGNITUDE, offset(-1));
                sigmoidTail();
            }
        }
        load(R, offset(-0.0));
        atLeast(X, R);
        subtractRegisters(X, X, MAGNITUDE);
        if (step == Step.SILU_TIMES) {
            widen(R, Name.FACTORS);
            multiplyRegisters(X, X, R);
        }
    }

    /** Leaves what e^EXPONENT is computed from in EXPONENT and POWER; uses SUM and R. */
    private void splitExponent() {
        load(SUM, offset(ActivationLoops.ROUNDER));
        load(R, offset(ActivationLoops.LOG2_E));
        addProduct(SUM, EXPONENT, R);
        powerOfTwo(POWER, SUM, bits(ActivationLoops.EXPONENT_BIAS), ActivationLoops.MANTISSA_BITS);
        load(R, offset(ActivationLoops.ROUNDER));
        subtractRegisters(SUM, SUM, R);
        load(R, offset(-ActivationLoops.LN_2));
        addProduct(EXPONENT, SUM, R);
    }

    private void sigmoidTail() {
        splitExponent();
        polynomial(SUM, EXPONENT, ActivationLoops.EXPONENTIAL);
        multiplyRegisters(SUM, SUM, POWER);
        load(U, offset(1));
        addRegisters(U, U, SUM);
        multiplyRegisters(MAGNITUDE, MAGNITUDE, SUM);
        divideRegisters(MAGNITUDE, MAGNITUDE, U);
    }

    /** Divides first: the exponential does not wait for it. */
    private void normalTail() {
        load(R, offset(ActivationLoops.MILLS_SHIFT));
        addRegisters(R, R, MAGNITUDE);
        load(U, offset(1));
        divideRegisters(U, U, R);
        multiply(EXPONENT, MAGNITUDE, offset(-0.5));
        multiplyRegisters(EXPONENT, EXPONENT, MAGNITUDE);
        splitExponent();
        polynomial(SUM, EXPONENT, ActivationLoops.EXPONENTIAL);
        polynomial(R, U, ActivationLoops.MILLS);
        multiplyRegisters(SUM, SUM, POWER);
        multiplyRegisters(MAGNITUDE, MAGNITUDE, SUM);
        multiplyRegisters(MAGNITUDE, MAGNITUDE, U);
        multiplyRegisters(MAGNITUDE, MAGNITUDE, R);
    }

    /** sum = the polynomial at x, whose first coefficient is that of the highest power. */
    private void polynomial(int sum, int x, double[] coefficients) {
        load(sum, offset(coefficients[0]));
        for (int i = 1; i < coefficients.length; i++) {
            multiplyAdd(sum, x, offset(coefficients[i]));
        }
    }

    /** Where the table has a constant. */
    private int offset(double value) {
        long bits = Double.doubleToRawLongBits(value);
        int number = 0;
        while (number < constants.size()
                && Double.doubleToRawLongBits(constants.get(number)) != bits) {
            number++;
        }
        if (number == constants.size()) {
            constants.add(value);
        }
        return number * lanes * Double.BYTES;
    }

    private int bits(long value) {
        return offset(Double.longBitsToDouble(value));
    }

    /** Writes a function that repeats {@code body} for all elements. */
    abstract void function(Runnable body);

    /** All that was written. */
    abstract byte[] code();

    /** How many vectors are done at a time. */
    abstract int vectors();

    // Operations on all these vectors; "constant" is an offset in the table.

    /** d = the next elements of an operand. */
    abstract void widen(int d, Name operand);

    /** d = d, rounded to floats. */
    abstract void round(int d);

    /** The next elements of the target = s, rounded. */
    abstract void narrowTarget(int s);

    abstract void load(int d, int constant);

    /** d = the smaller of |s| and the constant; NaN for NaN. */
    abstract void magnitude(int d, int s, int constant);

    /** d = the larger of d and n, where +0 is larger than -0; NaN if d is NaN. */
    abstract void atLeast(int d, int n);

    abstract void multiply(int d, int n, int constant);

    /** d = d x n + the constant, rounded once. */
    abstract void multiplyAdd(int d, int n, int constant);

    /** d += n x m, rounded once. */
    abstract void addProduct(int d, int n, int m);

    abstract void addRegisters(int d, int n, int m);

    abstract void subtractRegisters(int d, int n, int m);

    abstract void multiplyRegisters(int d, int n, int m);

    abstract void divideRegisters(int d, int n, int m);

    /** d = (s + the constant) shifted to the left, as whole numbers. */
    abstract void powerOfTwo(int d, int s, int constant, int bits);
}
