package dev.weft.cli;

import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.gemm.Scratch;
import dev.weft.report.Promise;
import dev.weft.report.Verification;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.nio.file.Files;

/**
 * Judges the output files of all ranks: bit for bit against one single-threaded product of all
 * rows, and that product against float64, as {@link ProductJudge} does. An output that differs from
 * the product is judged by itself; whether it may differ is for the engine's promise to say.
 */
final class Verifier {

    /** Up to this many multiply-adds golden is computed whole (about a second per 4e9 here). */
    private static final double MAX_GOLDEN_STEPS = 0x1p33;

    private final ProblemSpec problem;
    private final Operands operands;
    private final DataFolder folder;
    private final Gemm engine;
    private final ProductJudge judge;
    private final Progress progress;
    private boolean bitwise;
    private boolean withinBound;
    private Boolean seedRule;
    private boolean freivalds = true;
    private double maxAbsErr;
    private double relErr;
    private long checkedRows;
    private long totalRows;

    Verifier(
            ProblemSpec problem,
            Operands operands,
            DataFolder folder,
            String engine,
            Progress progress) {
        this.problem = problem;
        this.operands = operands;
        this.folder = folder;
        this.engine = Gemms.byName(engine);
        this.judge = new ProductJudge(problem);
        this.progress = progress;
    }

    static boolean goldenIsAffordable(ProblemSpec problem) {
        return (double) problem.groups() * problem.m() * problem.k() * problem.n()
                <= MAX_GOLDEN_STEPS;
    }

    /**
     * @param gatheredExact what the ranks found of their gathered A, null if they did not look
     * @param keptEqual whether the products that came with it equalled the measured ones
     * @param keptWithinBound whether they kept to the float64 bound
     */
    Verification verify(Boolean gatheredExact, boolean keptEqual, boolean keptWithinBound) {
        bitwise = keptEqual;
        withinBound = keptWithinBound;
        progress.begin("verifying", problem.ranks());
        int parts = problem.columnSharded() ? problem.ranksPerGroup() : 1;
        for (int group = 0; group < problem.groups(); group++) {
            for (int part = 0; part < parts; part++) {
                verifyPart(group, part);
            }
        }
        progress.end();
        return new Verification(
                engine.sameBitsForAnyRows() ? Promise.BITWISE : Promise.FLOAT64_BOUND,
                gatheredExact,
                bitwise,
                withinBound,
                seedRule,
                maxAbsErr,
                relErr,
                checkedRows,
                totalRows,
                checkedRows < totalRows && freivalds);
    }

    /** Ranks of one group that hold the same B. */
    private void verifyPart(int group, int part) {
        int first = group * problem.ranksPerGroup() + part;
        int last = problem.columnSharded() ? first : first + problem.ranksPerGroup() - 1;
        try (Arena arena = Arena.ofShared()) {
            Matrix a = Operands.gatheredA(operands, problem, group, arena);
            Matrix b = operands.b(first);
            Matrix unfused = unfused(a, b, arena);
            judge(a, b, unfused, group, first, arena);
            for (int rank = first; rank <= last; rank++) {
                Matrix output =
                        DataFolder.read(
                                folder.output(rank),
                                problem.outType(),
                                problem.m(),
                                problem.cols(rank),
                                arena);
                if (!unfused.bitwiseEquals(output)) {
                    bitwise = false;
                    judge(a, b, output, group, rank, arena);
                }
                progress.advance(rank + 1);
            }
        }
    }

    private Matrix unfused(Matrix a, Matrix b, Arena arena) {
        PackedB packed = engine.pack(b, problem.transposeB(), arena);
        Matrix c = Matrix.allocate(arena, problem.outType(), a.rows(), packed.n());
        Scratch scratch = engine.scratch(a.cols(), packed.n(), arena);
        engine.multiply(a, 0, a.rows(), packed, c, 0, scratch);
        return c;
    }

    private void judge(Matrix a, Matrix b, Matrix c, int group, int rank, Arena arena) {
        ProductJudge.Judgement judgement = judge.judge(a, b, c);
        withinBound &= judgement.deviation().withinBound();
        maxAbsErr = Math.max(maxAbsErr, judgement.deviation().maxAbsErr());
        relErr = Math.max(relErr, judgement.deviation().relErr());
        checkedRows += judgement.checkedRows();
        totalRows += c.rows();
        freivalds &= judgement.freivalds();
        if (Files.isRegularFile(folder.golden()) && goldenBelongsHere()) {
            Matrix golden =
                    DataFolder.read(
                            folder.golden(),
                            DType.FP32,
                            problem.groups() * problem.m(),
                            problem.n(),
                            arena);
            boolean held =
                    SeedRule.judge(
                                    golden.block(
                                            group * problem.m(),
                                            problem.m(),
                                            problem.firstCol(rank),
                                            problem.cols(rank)),
                                    c)
                            .passed();
            seedRule = held && !Boolean.FALSE.equals(seedRule);
        }
    }

    /** The user's own files have no golden; one of an earlier run may lie in the folder. */
    private boolean goldenBelongsHere() {
        return !(operands instanceof UserFiles);
    }
}
