package dev.weft.cli.data;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.ProblemSpec.Block;
import dev.weft.op.Epilogue;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;

/**
 * The epilogue of one rank's product, with the bias and the residual that it adds and the operands
 * of its norm: generated like A and B, in separate streams, even if A and B are the user's. Ranks
 * and the verification generate the same. Immutable and thread-safe.
 *
 * @param text the steps
 * @param bias [1, columns of the rank's C], null if no step adds it
 * @param residual [rows of the group, columns of the rank's C], null if no step adds it
 * @param normWeight [1, columns of the rank's C], null if no step normalizes
 * @param normBias likewise, null if no step is layernorm
 */
public record EpilogueData(
        String text, Matrix bias, Matrix residual, Matrix normWeight, Matrix normBias) {

    /** Of norms. */
    public static final double EPSILON = 1e-5;

    private static final int BIAS_STREAM = 2;
    private static final int RESIDUAL_STREAM = 3;
    private static final int NORM_WEIGHT_STREAM = 4;
    private static final int NORM_BIAS_STREAM = 5;
    private static final String SWIGLU = "swiglu";
    private static final String RMS_NORM = "rmsnorm";
    private static final String LAYER_NORM = "layernorm";

    /** The residual has C's type, the others B's; all are valid as long as the arena. */
    public static EpilogueData of(String text, ProblemSpec problem, int rank, Arena arena) {
        int joined = columnsJoined(text);
        Block bias = new Block(0, 1, problem.firstCol(rank) / joined, cols(text, problem, rank));
        long firstRow = Math.max(0, problem.groupOf(rank)) * problem.m();
        long rows = problem.shards(rank).totalRows();
        Block residual = new Block(firstRow, rows, bias.firstCol(), bias.cols());
        long totalCols = problem.n() / joined;
        DType type = problem.bType();
        boolean layer = has(LAYER_NORM, text);
        boolean norm = layer || has(RMS_NORM, text);
        return new EpilogueData(
                text,
                has("bias", text)
                        ? DataFolder.generated(problem, BIAS_STREAM, type, bias, totalCols, arena)
                        : null,
                has("residual", text)
                        ? DataFolder.generated(
                                problem,
                                RESIDUAL_STREAM,
                                problem.outType(),
                                residual,
                                totalCols,
                                arena)
                        : null,
                norm
                        ? DataFolder.generated(
                                problem, NORM_WEIGHT_STREAM, type, bias, totalCols, arena)
                        : null,
                layer
                        ? DataFolder.generated(
                                problem, NORM_BIAS_STREAM, type, bias, totalCols, arena)
                        : null);
    }

    private static boolean has(String step, String text) {
        return text != null && Arrays.asList(text.split(",")).contains(step);
    }

    /** Columns of the rank's C: half of its columns of B if swiglu joins gate and up. */
    public static long cols(String text, ProblemSpec problem, int rank) {
        return problem.cols(rank) / columnsJoined(text);
    }

    /** Columns of B that make one of C. */
    public static int columnsJoined(String text) {
        return has(SWIGLU, text) ? 2 : 1;
    }

    /**
     * The columns that an epilogue treats as one product each: the gate's half and up's if swiglu
     * joins them, otherwise all columns.
     *
     * @param text the steps; null if there are none
     * @param matrix a rank's B or its product
     * @param transposed whether its rows are the columns of the product
     */
    public static List<Matrix> products(String text, Matrix matrix, boolean transposed) {
        if (!has(SWIGLU, text)) {
            return List.of(matrix);
        }
        long rows = matrix.rows();
        long cols = matrix.cols();
        return transposed
                ? List.of(matrix.rows(0, rows / 2), matrix.rows(rows / 2, rows / 2))
                : List.of(
                        matrix.block(0, rows, 0, cols / 2),
                        matrix.block(0, rows, cols / 2, cols / 2));
    }

    /** Refuses a problem whose rows no rank has whole, or that swiglu cannot halve. */
    public static void check(String text, ProblemSpec problem) {
        String norm = has(RMS_NORM, text) ? RMS_NORM : has(LAYER_NORM, text) ? LAYER_NORM : null;
        if (norm != null && problem.columnSharded() && problem.ranks() > problem.groups()) {
            throw new UsageException(
                    "--epilogue %s with --rhs column-sharded: no rank has whole rows of C for %s;"
                            + " expected --rhs replicated, or --op matmul-reduce-scatter or"
                            + " matmul-allreduce",
                    text, norm);
        }
        if (!has(SWIGLU, text)) {
            return;
        }
        List<String> steps = Arrays.asList(text.split(","));
        if (steps.indexOf("residual") >= 0 && steps.indexOf("residual") < steps.indexOf(SWIGLU)) {
            throw new UsageException(
                    "--epilogue %s: a residual is added to one result: expected it after swiglu",
                    text);
        }
        if (problem.fp8() != null) {
            throw new UsageException(
                    "--epilogue %s with --dtype fp8, whose B has scales: expected fp16, bf16 or"
                            + " fp32",
                    text);
        }
        if (problem.data().equals(ProblemSpec.FILES) && problem.columnSharded()) {
            throw new UsageException(
                    "--epilogue %s with --b and --rhs column-sharded: each rank's own columns are"
                            + " gate and up, so C would depend on the number of ranks; expected --rhs"
                            + " replicated",
                    text);
        }
        for (int rank = 0; rank < problem.ranks(); rank++) {
            if (!problem.sitsOut(rank) && problem.cols(rank) % 2 != 0) {
                throw new UsageException(
                        "--epilogue %s: the left half of a rank's columns of B is the gate, the"
                                + " right half is up, and rank %s has %s: expected an even number",
                        text, rank, problem.cols(rank));
            }
        }
    }

    /** The results of a product's sums, computed by the calling thread. */
    public Matrix finished(Matrix sums, DType type, Arena arena) {
        List<Matrix> products = products(text, sums, false);
        Matrix results = Matrix.allocate(arena, type, sums.rows(), products.getFirst().cols());
        epilogue().apply(products, List.of(results));
        return results;
    }

    /** This with the residual of only some rows. */
    public EpilogueData ofRows(long firstRow, long rows) {
        return residual == null
                ? this
                : new EpilogueData(text, bias, residual.rows(firstRow, rows), normWeight, normBias);
    }

    public Epilogue epilogue() {
        return epilogue(residual);
    }

    /** The epilogue with the residual elsewhere, as on a GPU. */
    public Epilogue epilogue(Object sameResidual) {
        return Epilogue.parse(
                text, () -> bias, () -> sameResidual, () -> normWeight, () -> normBias, EPSILON);
    }
}
