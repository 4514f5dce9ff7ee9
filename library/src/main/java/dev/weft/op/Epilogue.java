package dev.weft.op;

import dev.weft.op.exec.EpilogueSteps;
import dev.weft.op.exec.EpilogueSteps.Kind;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * What is done to the elements of a product before they are rounded to its type: a list of steps,
 * as {@code Epilogue.none().bias(bias).gelu()}. An operator applies it to rows as soon as they are
 * multiplied, while they are in a near cache.
 *
 * <p>Every step takes fp32 values and gives fp32 values, the first one the sums of the product; the
 * last result is rounded to the output's type. The bits are the same on every machine and for
 * whatever rows are done at a time (a NaN's own bits excepted). Immutable; any thread may use it.
 */
public final class Epilogue {

    /**
     * One step.
     *
     * @param operands of a bias one for each product, of a residual one; else none
     */
    private record Step(Kind kind, List<Supplier<?>> operands) {}

    private static final Epilogue NONE = new Epilogue(List.of());

    private final List<Step> steps;

    private Epilogue(List<Step> steps) {
        this.steps = steps;
    }

    /** Nothing but the rounding. */
    public static Epilogue none() {
        return NONE;
    }

    /**
     * Steps by their names, with commas between: {@code bias}, {@code relu}, {@code gelu}, {@code
     * gelu-tanh}, {@code silu}, {@code swiglu}, {@code residual}.
     *
     * @param bias of {@link #bias}, asked for when an operator is prepared; one for all products
     * @param residual of {@link #residual(Supplier)}
     */
    public static Epilogue parse(String text, Supplier<Matrix> bias, Supplier<?> residual) {
        Epilogue epilogue = NONE;
        for (String name : text.split(",", -1)) {
            Kind kind =
                    Arrays.stream(Kind.values())
                            .filter(known -> known.text().equals(name))
                            .findFirst()
                            .orElseThrow(() -> unknown(name, text));
            epilogue =
                    epilogue.then(
                            kind,
                            switch (kind) {
                                case BIAS -> List.of(bias);
                                case RESIDUAL -> List.of(residual);
                                default -> List.of();
                            });
        }
        return epilogue;
    }

    private static IllegalArgumentException unknown(String name, String text) {
        String known =
                Arrays.stream(Kind.values()).map(Kind::text).collect(Collectors.joining(", "));
        return new IllegalArgumentException(
                "epilogue '%s' has a step '%s': expected steps of %s, with commas between"
                        .formatted(text, name, known));
    }

    /** Adds a value to each column of the only product. */
    public Epilogue bias(float... values) {
        return bias(Matrix.copyOf(Arena.ofAuto(), new float[][] {values}));
    }

    /**
     * Adds a value to each column.
     *
     * @param ofEachB [1, N] of any type, one for each B, or one for all; after {@link #swiglu} for
     *     what it has left. They are read when an operator is prepared, and may be freed afterwards
     */
    public Epilogue bias(Matrix... ofEachB) {
        return then(
                Kind.BIAS,
                Arrays.stream(ofEachB).<Supplier<?>>map(matrix -> () -> matrix).toList());
    }

    /** The larger of the value and zero: +0 for -0, NaN for NaN. */
    public Epilogue relu() {
        return then(Kind.RELU, List.of());
    }

    /** x Phi(x), where Phi is the normal distribution function: the form with erf. */
    public Epilogue gelu() {
        return then(Kind.GELU, List.of());
    }

    /** x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). */
    public Epilogue geluTanh() {
        return then(Kind.GELU_TANH, List.of());
    }

    /** x / (1 + e^-x). */
    public Epilogue silu() {
        return then(Kind.SILU, List.of());
    }

    /** silu(gate) x up: makes one product of two, of Bs with as many columns, gate first. */
    public Epilogue swiglu() {
        return then(Kind.SWIGLU, List.of());
    }

    /**
     * Adds a matrix of the result's shape, of any type; not on a GPU. It is read while a call runs:
     * to add another one in the next call, write it there before that starts.
     */
    public Epilogue residual(Matrix matrix) {
        Objects.requireNonNull(matrix, "matrix");
        return residual(() -> matrix);
    }

    /**
     * Adds the matrix that {@code ofThisCall} names as a call starts, of the result's shape and any
     * type: a {@link Matrix}, or on a GPU a {@code DeviceMatrix}. It is asked by the thread that
     * starts the call, and by {@code prepare()} too. The matrix is read until the call has ended.
     */
    public Epilogue residual(Supplier<?> ofThisCall) {
        return then(Kind.RESIDUAL, List.of(ofThisCall));
    }

    private Epilogue then(Kind kind, List<Supplier<?>> operands) {
        if (steps.stream().anyMatch(step -> step.kind() == kind)) {
            throw new IllegalArgumentException(
                    "epilogue '%s,%s' has two steps '%s': expected one of each kind"
                            .formatted(this, kind.text(), kind.text()));
        }
        List<Step> more = new ArrayList<>(steps);
        more.add(new Step(kind, List.copyOf(operands)));
        return new Epilogue(List.copyOf(more));
    }

    /**
     * Makes results of whole products at once, as an operator does of rows as they are multiplied:
     * the same bits. By the calling thread.
     *
     * @param sums the products with each B, fp32
     * @param targets the results, of any type: one for each product, or one where {@link #swiglu}
     *     joins two; the residual is of the same shape
     */
    public void apply(List<Matrix> sums, List<Matrix> targets) {
        int results = joins() ? 1 : sums.size();
        if (targets.size() != results) {
            throw misfit(
                    "%d products and %d targets".formatted(sums.size(), targets.size()),
                    results + " targets");
        }
        for (int i = 0; i < sums.size(); i++) {
            checkShapes(sums.get(i), targets.get(joins() ? 0 : i));
        }
        List<Long> columns = sums.stream().map(Matrix::cols).toList();
        PreparedEpilogue prepared = new PreparedEpilogue(fitting(columns), sums.getFirst().rows());
        PreparedEpilogue.Scratch scratch = prepared.new Scratch();
        for (int i = 0; i < results; i++) {
            Matrix target = targets.get(i);
            Matrix second = joins() ? sums.get(1) : null;
            scratch.apply(i, sums.get(i), second, 0, target.rows(), 0, target.cols(), target, 0);
        }
    }

    private void checkShapes(Matrix sums, Matrix target) {
        if (sums.dtype() != DType.FP32
                || sums.rows() != target.rows()
                || sums.cols() != target.cols()) {
            throw misfit(
                    "sums %s and a target %s".formatted(sums.describe(), target.describe()),
                    "fp32 sums, and a target of their shape");
        }
    }

    /** Whether there are no steps. */
    public boolean isNone() {
        return steps.isEmpty();
    }

    /** Whether one result is made of two products. */
    boolean joins() {
        return steps.stream().anyMatch(step -> step.kind() == Kind.SWIGLU);
    }

    /**
     * The steps with their operands; refuses what does not fit the products. A residual is checked
     * by who applies it.
     *
     * @param columns N of each B
     */
    EpilogueSteps fitting(List<Long> columns) {
        List<Long> left = columns;
        List<float[]> biases = new ArrayList<>();
        Supplier<?> residuals = null;
        for (Step step : steps) {
            switch (step.kind()) {
                case BIAS -> addBiases(step, left, biases);
                case SWIGLU -> {
                    if (left.size() != 2 || !left.get(0).equals(left.get(1))) {
                        throw misfit("swiglu of products with N = " + left, "two of the same N");
                    }
                    left = left.subList(0, 1);
                }
                case RESIDUAL -> {
                    if (left.size() != 1) {
                        throw misfit("a residual for %d products".formatted(left.size()), "one");
                    }
                    residuals = step.operands().getFirst();
                }
                default -> {}
            }
        }
        return new EpilogueSteps(
                toString(),
                steps.stream().map(Step::kind).toList(),
                List.copyOf(biases),
                residuals,
                columns.isEmpty() ? 0 : columns.getFirst());
    }

    private void addBiases(Step step, List<Long> columns, List<float[]> biases) {
        int count = step.operands().size();
        if (count != 1 && count != columns.size()) {
            throw misfit(
                    "%d biases for %d products".formatted(count, columns.size()),
                    "one for each, or one for all");
        }
        for (int i = 0; i < columns.size(); i++) {
            long cols = columns.get(i);
            if (!(step.operands().get(count == 1 ? 0 : i).get() instanceof Matrix bias)) {
                throw misfit("bias of product %d is null".formatted(i), "[1, %d]".formatted(cols));
            }
            if (bias.rows() != 1 || bias.cols() != cols) {
                throw misfit(
                        "bias of product %d is %s".formatted(i, bias.describe()),
                        "[1, %d]".formatted(cols));
            }
            float[] values = new float[Math.toIntExact(cols)];
            for (int col = 0; col < values.length; col++) {
                values[col] = bias.get(0, col);
            }
            biases.add(values);
        }
    }

    private IllegalArgumentException misfit(String what, String right) {
        return EpilogueSteps.misfit(toString(), what, right);
    }

    /** The names of the steps, as {@link #parse} reads them; empty where there are none. */
    @Override
    public String toString() {
        return steps.stream().map(step -> step.kind().text()).collect(Collectors.joining(","));
    }
}
