package dev.weft.op.exec;

import dev.weft.fabric.transport.Agreement;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * An epilogue that fits the products of one operator, for those who apply it on CPUs or GPUs.
 *
 * @param text the names of the steps, for messages
 * @param biases of each product that a bias is added to; none if no step adds one
 * @param residuals asked for the residual as a call starts; null if no step adds one
 * @param cols of the residual
 */
public record EpilogueSteps(
        String text, List<Kind> kinds, List<float[]> biases, Supplier<?> residuals, long cols) {

    /** What a step does. Kernels know steps by their numbers. */
    public enum Kind {
        BIAS("bias"),
        RELU("relu"),
        GELU("gelu"),
        GELU_TANH("gelu-tanh"),
        SILU("silu"),
        SWIGLU("swiglu"),
        RESIDUAL("residual");

        private final String text;

        Kind(String text) {
            this.text = text;
        }

        /** The name by which users know it. */
        public String text() {
            return text;
        }

        /** From 1 on; at most 7. */
        public int number() {
            return ordinal() + 1;
        }
    }

    /** Whether one result is made of two products. */
    public boolean joins() {
        return kinds.contains(Kind.SWIGLU);
    }

    /** All ranks must have the same steps. They are compared by a number, with a digit for each. */
    public void agree(Agreement agreement) {
        String digits =
                Arrays.stream(Kind.values())
                        .map(kind -> kind.number() + " " + kind.text())
                        .collect(Collectors.joining(", "));
        agreement.on(
                "the epilogue (digits: %s)".formatted(digits),
                kinds.stream().mapToLong(Kind::number).reduce(0, (n, digit) -> 10 * n + digit));
    }

    /** What an operand that does not fit is refused with. */
    public IllegalArgumentException misfit(String what, String right) {
        return misfit(text, what, right);
    }

    /** Likewise, before there are steps that fit. */
    public static IllegalArgumentException misfit(String text, String what, String right) {
        return new IllegalArgumentException(
                "epilogue '%s': %s: expected %s".formatted(text, what, right));
    }
}
