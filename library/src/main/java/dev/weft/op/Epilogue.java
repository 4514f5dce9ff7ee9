package dev.weft.op;

import dev.weft.exec.host.PreparedEpilogue;
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
 * The steps that are applied to the elements of a product before they are rounded to its type, such
 * as {@code Epilogue.none().bias(bias).gelu()}; the last may normalize whole rows. An operator
 * applies them to rows as soon as they are multiplied, while they are in a near cache.
 *
 * <p>Every step takes and gives fp32 values. The first step gets the sums of the product; the
 * result of the last one is rounded to the output's type. The bits are the same on every machine,
 * however many rows are processed at a time (except for the bits of a NaN). Immutable and
 * thread-safe.
 */
public final class Epilogue {

    /**
     * One step.
     *
     * @param operands for a bias, one for each product; for a residual, one; for a norm, the weight
     *     and what is added; otherwise none
     * @param epsilon of a norm; otherwise 0
     */
    private record Step(Kind kind, List<Supplier<?>> operands, double epsilon) {}

    private static final Epilogue NONE = new Epilogue(List.of());

    private final List<Step> steps;

    private Epilogue(List<Step> steps) {
        this.steps = steps;
    }

    /** No steps: elements are only rounded. */
    public static Epilogue none() {
        return NONE;
    }

    /**
     * Parses the names of steps, separated by commas: {@code bias}, {@code relu}, {@code gelu},
     * {@code gelu-tanh}, {@code silu}, {@code swiglu}, {@code residual}. The norms need operands of
     * their own: see the other {@code parse}.
     *
     * @param bias gives the operand of {@link #bias} when an operator is prepared; one for all
     *     products
     * @param residual gives the operand of {@link #residual(Supplier)}
     */
    public static Epilogue parse(String text, Supplier<Matrix> bias, Supplier<?> residual) {
        Epilogue epilogue = parse(text, bias, residual, () -> null, () -> null, 0);
        if (epilogue.normalizes()) {
            throw new IllegalArgumentException(
                    "epilogue '%s' has a norm without a weight: expected one, and epsilon"
                            .formatted(text));
        }
        return epilogue;
    }

    /**
     * Parses the names of steps, separated by commas, which include {@code rmsnorm} and {@code
     * layernorm}.
     *
     * @param bias gives the operand of {@link #bias} when an operator is prepared; one for all
     *     products
     * @param residual gives the operand of {@link #residual(Supplier)}
     * @param normWeight gives the weight of a norm when an operator is prepared
     * @param normBias gives what {@link #layerNorm} adds
     * @param epsilon of a norm
     */
    public static Epilogue parse(
            String text,
            Supplier<Matrix> bias,
            Supplier<?> residual,
            Supplier<Matrix> normWeight,
            Supplier<Matrix> normBias,
            double epsilon) {
        Epilogue epilogue = NONE;
        for (String name : text.split(",", -1)) {
            Kind kind =
                    Arrays.stream(Kind.values())
                            .filter(known -> known.text().equals(name))
                            .findFirst()
                            .orElseThrow(() -> unknown(name, text));
            epilogue =
                    switch (kind) {
                        case BIAS -> epilogue.then(kind, List.of(bias));
                        case RESIDUAL -> epilogue.then(kind, List.of(residual));
                        case RMS_NORM -> epilogue.norm(kind, List.of(normWeight), epsilon);
                        case LAYER_NORM ->
                                epilogue.norm(kind, List.of(normWeight, normBias), epsilon);
                        default -> epilogue.then(kind, List.of());
                    };
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
     * @param ofEachB [1, N] of any type, one for each B, or one for all; after {@link #swiglu}, for
     *     the columns that are left. They are read when an operator is prepared and may be freed
     *     afterwards
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

    /** x Phi(x), where Phi is the normal distribution function: the exact form, with erf. */
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

    /** silu(gate) x up: joins the products with two Bs of equal width, gate first, into one. */
    public Epilogue swiglu() {
        return then(Kind.SWIGLU, List.of());
    }

    /**
     * Adds a matrix of the result's shape, of any type; not on a GPU. It is read while a call runs:
     * to add other values in the next call, write them before that call starts.
     */
    public Epilogue residual(Matrix matrix) {
        Objects.requireNonNull(matrix, "matrix");
        return residual(() -> matrix);
    }

    /**
     * Adds the matrix that {@code ofThisCall} gives when a call starts. It has the result's shape
     * and any type: a {@link Matrix}, or on a GPU a {@code DeviceMatrix}. The supplier is called by
     * the thread that starts the call, and also by {@code prepare()}. The matrix is read until the
     * call has ended.
     */
    public Epilogue residual(Supplier<?> ofThisCall) {
        return then(Kind.RESIDUAL, List.of(ofThisCall));
    }

    /**
     * Divides each row by the root of the mean of its squares and of epsilon, and multiplies column
     * by column by a weight: x / sqrt(mean(x^2) + epsilon) w. The last step, of a single result.
     *
     * @param weight [1, N] of any type; it is read when an operator is prepared and may be freed
     *     afterwards
     * @param epsilon 0 or more
     */
    public Epilogue rmsNorm(Matrix weight, double epsilon) {
        Objects.requireNonNull(weight, "weight");
        return norm(Kind.RMS_NORM, List.of(() -> weight), epsilon);
    }

    /**
     * Takes the mean off each row, divides it by the root of its variance and of epsilon,
     * multiplies column by column by a weight and adds a bias: (x - mean) / sqrt(mean((x - mean)^2)
     * + epsilon) w + b. The last step, of a single result.
     *
     * @param weight [1, N] of any type; it is read when an operator is prepared and may be freed
     *     afterwards
     * @param bias likewise
     * @param epsilon 0 or more
     */
    public Epilogue layerNorm(Matrix weight, Matrix bias, double epsilon) {
        Objects.requireNonNull(weight, "weight");
        Objects.requireNonNull(bias, "bias");
        return norm(Kind.LAYER_NORM, List.of(() -> weight, () -> bias), epsilon);
    }

    private Epilogue norm(Kind kind, List<Supplier<?>> operands, double epsilon) {
        if (!(epsilon >= 0 && epsilon < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException(
                    "epsilon of %s is %s: expected 0 or more".formatted(kind.text(), epsilon));
        }
        return then(kind, operands, epsilon);
    }

    private Epilogue then(Kind kind, List<Supplier<?>> operands) {
        return then(kind, operands, 0);
    }

    private Epilogue then(Kind kind, List<Supplier<?>> operands, double epsilon) {
        if (steps.stream().anyMatch(step -> step.kind() == kind)) {
            throw new IllegalArgumentException(
                    "epilogue '%s,%s' has two steps '%s': expected one of each kind"
                            .formatted(this, kind.text(), kind.text()));
        }
        if (normalizes()) {
            throw new IllegalArgumentException(
                    "epilogue '%s,%s' has a step after '%s': expected the norm to be the last one"
                            .formatted(this, kind.text(), steps.getLast().kind().text()));
        }
        List<Step> more = new ArrayList<>(steps);
        more.add(new Step(kind, List.copyOf(operands), epsilon));
        return new Epilogue(List.copyOf(more));
    }

    /**
     * Computes the results of whole products at once, with the same bits as an operator that does
     * so row by row. Runs on the calling thread.
     *
     * @param sums the products with each B, fp32
     * @param targets the results, of any type: one for each product, or one if {@link #swiglu}
     *     joins two; the residual has the same shape
     */
    public void apply(List<Matrix> sums, List<Matrix> targets) {
        int results = joins() ? 1 : sums.size();
        if (targets.size() != results) {
            throw wrongShape(
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
            scratch.apply(i, sums.get(i), 0, second, 0, target.rows(), 0, target.cols(), target, 0);
        }
    }

    private void checkShapes(Matrix sums, Matrix target) {
        if (sums.dtype() != DType.FP32
                || sums.rows() != target.rows()
                || sums.cols() != target.cols()) {
            throw wrongShape(
                    "sums %s and a target %s".formatted(sums.describe(), target.describe()),
                    "fp32 sums, and a target of their shape");
        }
    }

    /** Whether there are no steps. */
    public boolean isNone() {
        return steps.isEmpty();
    }

    /** Whether one result is made from two products. */
    boolean joins() {
        return steps.stream().anyMatch(step -> step.kind() == Kind.SWIGLU);
    }

    /** Whether it adds a matrix with the rows of the result. */
    boolean addsResidual() {
        return steps.stream().anyMatch(step -> step.kind() == Kind.RESIDUAL);
    }

    private boolean normalizes() {
        return !steps.isEmpty() && steps.getLast().kind().isNorm();
    }

    /**
     * The steps with their operands; refuses what does not fit the products. The residual is
     * checked by the code that applies it.
     *
     * @param columns N of each B
     */
    EpilogueSteps fitting(List<Long> columns) {
        List<Long> left = columns;
        List<float[]> biases = new ArrayList<>();
        Supplier<?> residuals = null;
        EpilogueSteps.Norm norm = null;
        for (Step step : steps) {
            switch (step.kind()) {
                case BIAS -> addBiases(step, left, biases);
                case SWIGLU -> {
                    if (left.size() != 2 || !left.get(0).equals(left.get(1))) {
                        throw wrongShape(
                                "swiglu of products with N = " + left, "two of the same N");
                    }
                    left = left.subList(0, 1);
                }
                case RESIDUAL -> {
                    if (left.size() != 1) {
                        throw wrongShape(
                                "a residual for %d products".formatted(left.size()), "one");
                    }
                    residuals = step.operands().getFirst();
                }
                case RMS_NORM, LAYER_NORM -> {
                    if (left.size() != 1) {
                        throw wrongShape(
                                "%s of %d products".formatted(step.kind().text(), left.size()),
                                "one");
                    }
                    norm = norm(step, left.getFirst());
                }
                default -> {}
            }
        }
        return new EpilogueSteps(
                toString(),
                steps.stream().map(Step::kind).toList(),
                List.copyOf(biases),
                residuals,
                columns.isEmpty() ? 0 : columns.getFirst(),
                norm,
                null);
    }

    private EpilogueSteps.Norm norm(Step step, long cols) {
        List<float[]> operands = new ArrayList<>();
        for (Supplier<?> operand : step.operands()) {
            String what = operands.isEmpty() ? "weight" : "bias";
            operands.add(values(what + " of " + step.kind().text(), operand, cols));
        }
        float[] bias = operands.size() == 1 ? null : operands.get(1);
        return new EpilogueSteps.Norm(operands.getFirst(), bias, step.epsilon());
    }

    private void addBiases(Step step, List<Long> columns, List<float[]> biases) {
        int count = step.operands().size();
        if (count != 1 && count != columns.size()) {
            throw wrongShape(
                    "%d biases for %d products".formatted(count, columns.size()),
                    "one for each, or one for all");
        }
        for (int i = 0; i < columns.size(); i++) {
            Supplier<?> bias = step.operands().get(count == 1 ? 0 : i);
            biases.add(values("bias of product " + i, bias, columns.get(i)));
        }
    }

    /** A value for each column. */
    private float[] values(String what, Supplier<?> operand, long cols) {
        if (!(operand.get() instanceof Matrix matrix)) {
            throw wrongShape(what + " is null", "[1, %d]".formatted(cols));
        }
        if (matrix.rows() != 1 || matrix.cols() != cols) {
            throw wrongShape(
                    "%s is %s".formatted(what, matrix.describe()), "[1, %d]".formatted(cols));
        }
        return matrix.toArray();
    }

    private IllegalArgumentException wrongShape(String what, String right) {
        return EpilogueSteps.wrongShape(toString(), what, right);
    }

    /** The names of the steps, as {@link #parse} reads them; empty if there are none. */
    @Override
    public String toString() {
        return steps.stream().map(step -> step.kind().text()).collect(Collectors.joining(","));
    }
}
