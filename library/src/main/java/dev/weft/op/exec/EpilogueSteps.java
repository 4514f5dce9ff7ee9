package dev.weft.op.exec;

import dev.weft.fabric.transport.Agreement;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.tensor.ScaledMatrix.Scaling;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * An epilogue that fits the products of one operator, for the code that applies it on CPUs or GPUs.
 *
 * @param text the names of the steps, for messages
 * @param biases the bias of each product; empty if no step adds one
 * @param residuals gives the residual when a call starts; null if no step adds one
 * @param cols the columns of the residual
 * @param norm what the last step normalizes by; null if it is not a norm
 * @param scaled how results of 8 bits are scaled; null for others
 */
public record EpilogueSteps(
        String text,
        List<Kind> kinds,
        List<float[]> biases,
        Supplier<?> residuals,
        long cols,
        Norm norm,
        ScaledRows scaled) {

    /** No steps. */
    public static final EpilogueSteps NONE =
            new EpilogueSteps("", List.of(), List.of(), null, 0, null, null);

    /**
     * The operands of a norm.
     *
     * @param bias null for the root mean square
     */
    public record Norm(float[] weight, float[] bias, double epsilon) {}

    /**
     * Rows with their scales in front.
     *
     * @param mostCols the elements of the widest rows
     */
    public record ScaledRows(Scaling scaling, int mostCols) {}

    /** The kind of a step. Kernels identify steps by their numbers. */
    public enum Kind {
        BIAS("bias"),
        RELU("relu"),
        GELU("gelu"),
        GELU_TANH("gelu-tanh"),
        SILU("silu"),
        SWIGLU("swiglu"),
        RESIDUAL("residual"),
        RMS_NORM("rmsnorm"),
        LAYER_NORM("layernorm");

        private final String text;

        Kind(String text) {
            this.text = text;
        }

        /** The name that users know. */
        public String text() {
            return text;
        }

        /** From 1 to at most 9. */
        public int number() {
            return ordinal() + 1;
        }

        /** Whether it needs whole rows, so that it is the last step. */
        public boolean isNorm() {
            return this == RMS_NORM || this == LAYER_NORM;
        }
    }

    /** Whether one result is made from two products. */
    public boolean joins() {
        return kinds.contains(Kind.SWIGLU);
    }

    /** The same steps for results of 8 bits. */
    public EpilogueSteps with(ScaledRows rows) {
        return new EpilogueSteps(text, kinds, biases, residuals, cols, norm, rows);
    }

    /** Whether sums are only rounded. */
    public boolean isNone() {
        return kinds.isEmpty() && scaled == null;
    }

    /** The columns of results that have {@code n} elements in a row, and their scales in front. */
    public long resultCols(long n) {
        return scaled == null ? n : ScaledMatrix.rowBytes(n, scaled.scaling());
    }

    /** Whether only whole rows can be finished. */
    public boolean takesWholeRows() {
        return norm != null || scaled != null;
    }

    /** All ranks must have the same steps. They are compared as a number, one digit per step. */
    public void agree(Agreement agreement) {
        String digits =
                Arrays.stream(Kind.values())
                        .map(kind -> kind.number() + " " + kind.text())
                        .collect(Collectors.joining(", "));
        agreement.on(
                "the epilogue (digits: %s)".formatted(digits),
                kinds.stream().mapToLong(Kind::number).reduce(0, (n, digit) -> 10 * n + digit));
        agreement.on(
                "the norm's epsilon (as the bits of a float64)",
                norm == null ? 0 : Double.doubleToLongBits(norm.epsilon()));
        agreement.on(
                "the products' scales (0 none, 1 tensor, 2 row, 3 block)",
                scaled == null ? 0 : 1 + scaled.scaling().ordinal());
    }

    /** The error for an operand that does not fit. */
    public IllegalArgumentException wrongShape(String what, String right) {
        return wrongShape(text, what, right);
    }

    /** The error for an operand that does not fit, before there are steps that fit. */
    public static IllegalArgumentException wrongShape(String text, String what, String right) {
        return new IllegalArgumentException(
                "epilogue '%s': %s: expected %s".formatted(text, what, right));
    }
}
