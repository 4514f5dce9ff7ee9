package dev.weft.gemm.code;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.weft.gemm.code.EpilogueCode.Addresses;
import dev.weft.gemm.code.EpilogueCode.Step;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Activation functions of fp32 values, with the same bits on every machine. They are computed in
 * float64, using only operations that IEEE 754 defines exactly, and rounded once. {@link Math#exp}
 * and similar methods are not used: their results may differ between machines. Results, including
 * denormal ones, are within 0.6 units in the last place of the exact value. A NaN gives a NaN with
 * unspecified bits.
 *
 * <p>All are {@code max(x, -0) - |x| e^-a(|x|) G}: nothing cancels, and for negative x the small
 * result keeps its digits. Not thread-safe.
 */
public final class Activations {

    /** The most values of a call: all that is computed for them stays in the nearest cache. */
    public static final int PIECE = 512;

    static final Set<Step> FUNCTIONS =
            EnumSet.of(Step.SILU, Step.SILU_TIMES, Step.GELU, Step.GELU_TANH);

    /** Null for plain loops: if Weft writes no machine code for this machine. */
    private final Native code;

    private final ActivationLoops loops;

    /** With machine code, if there is some: it takes half of the time of the loops in Java. */
    public Activations() {
        this(EpilogueCode.of(List.of()) != null);
    }

    Activations(boolean inMachineCode) {
        this.code = inMachineCode ? new Native() : null;
        this.loops = inMachineCode ? null : new ActivationLoops();
    }

    /** Memory for machine code. */
    private static final class Native {

        private static final long BYTES = (long) PIECE * Float.BYTES;

        private final Map<Step, EpilogueCode> functions = new EnumMap<>(Step.class);
        private final MemorySegment values = Arena.ofAuto().allocate(BYTES, X86Tiles.LINE_BYTES);
        private final MemorySegment factors = Arena.ofAuto().allocate(BYTES, X86Tiles.LINE_BYTES);
        private final Addresses at = new Addresses();

        Native() {
            at.source = values.address();
            at.target = values.address();
            at.factors = factors.address();
        }

        void apply(Step step, float[] from, float[] times, int count) {
            MemorySegment.copy(from, 0, values, JAVA_FLOAT, 0, count);
            if (times != null) {
                MemorySegment.copy(times, 0, factors, JAVA_FLOAT, 0, count);
            }
            EpilogueCode function =
                    functions.computeIfAbsent(step, one -> EpilogueCode.of(List.of(one)));
            int whole = Math.ceilDiv(count, function.step()) * function.step();
            function.apply(values, at, values, whole);
            MemorySegment.copy(values, JAVA_FLOAT, 0, from, 0, count);
        }
    }

    /** The larger of the value and +0: +0 for -0, NaN for NaN. */
    public static void relu(float[] values, int count) {
        for (int i = 0; i < count; i++) {
            values[i] = Math.max(values[i], 0f);
        }
    }

    /** x / (1 + e^-x); -0 for minus infinity. */
    public void silu(float[] values, int count) {
        apply(Step.SILU, values, null, count);
    }

    /** silu(x) times {@code factors}, rounded once. */
    public void siluTimes(float[] values, float[] factors, int count) {
        apply(Step.SILU_TIMES, values, factors, count);
    }

    /** x Phi(x), where Phi is the normal distribution function; -0 for minus infinity. */
    public void gelu(float[] values, int count) {
        apply(Step.GELU, values, null, count);
    }

    /** x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))); -0 for minus infinity. */
    public void geluTanh(float[] values, int count) {
        apply(Step.GELU_TANH, values, null, count);
    }

    private void apply(Step step, float[] values, float[] factors, int count) {
        if (code == null) {
            loops.apply(step, values, factors, count);
        } else {
            code.apply(step, values, factors, count);
        }
    }
}
