package dev.weft.cli.data;

import dev.weft.cli.options.ProblemSpec;
import dev.weft.op.Epilogue;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Arrays;

/**
 * The epilogue of one rank's product, with the bias and the residual that it adds: made up as A and
 * B are, in streams of their own, also where A and B are the user's. Ranks and whoever verifies
 * them make the same. Immutable; any thread may read it.
 *
 * @param text the steps
 * @param bias [1, columns of the rank], null where no step adds it
 * @param residual [rows of the group, columns of the rank], null where no step adds it
 */
public record EpilogueData(String text, Matrix bias, Matrix residual) {

    private static final int BIAS_STREAM = 2;
    private static final int RESIDUAL_STREAM = 3;

    /** The bias is of B's type, the residual of C's; both live as long as the arena. */
    public static EpilogueData of(String text, ProblemSpec problem, int rank, Arena arena) {
        long rows = problem.shards(rank).totalRows();
        long firstRow = Math.max(0, problem.groupOf(rank)) * problem.m();
        return new EpilogueData(
                text,
                made("bias", text, problem, rank, BIAS_STREAM, problem.bType(), 0, 1, arena),
                made(
                        "residual",
                        text,
                        problem,
                        rank,
                        RESIDUAL_STREAM,
                        problem.outType(),
                        firstRow,
                        rows,
                        arena));
    }

    private static Matrix made(
            String step,
            String text,
            ProblemSpec problem,
            int rank,
            int stream,
            DType type,
            long firstRow,
            long rows,
            Arena arena) {
        if (!Arrays.asList(text.split(",")).contains(step)) {
            return null;
        }
        Matrix matrix = Matrix.allocate(arena, type, rows, problem.cols(rank));
        DataFolder.fill(
                DataFolder.source(problem, stream),
                matrix,
                firstRow,
                problem.firstCol(rank),
                problem.n());
        return matrix;
    }

    /** With the residual of some of the rows. */
    public EpilogueData ofRows(long firstRow, long rows) {
        return residual == null
                ? this
                : new EpilogueData(text, bias, residual.rows(firstRow, rows));
    }

    public Epilogue epilogue() {
        return epilogue(residual);
    }

    /** With the residual in another place, as on a GPU. */
    public Epilogue epilogue(Object sameResidual) {
        return Epilogue.parse(text, () -> bias, () -> sameResidual);
    }
}
