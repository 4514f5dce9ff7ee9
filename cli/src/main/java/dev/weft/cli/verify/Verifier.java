package dev.weft.cli.verify;

import dev.weft.cli.console.Progress;
import dev.weft.cli.data.DataFolder;
import dev.weft.cli.data.Operands;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.report.Promise;
import dev.weft.report.Verification;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.nio.file.Files;

/**
 * Judges the output files of all ranks: bit for bit against a reference, and that against float64,
 * as {@link ProductJudge} does. The reference is one single-threaded product of all rows; for
 * outputs of GPUs, whose sums have another order, it is the first rank's output, and the ranks have
 * compared each with its own unfused product. An output that differs from the reference is judged
 * by itself; whether it may differ is for the promise to say.
 */
public final class Verifier {

    /** Up to this many multiply-adds golden is computed whole (about a second per 4e9 here). */
    private static final double MAX_GOLDEN_STEPS = 0x1p33;

    private final ProblemSpec problem;
    private final Operands operands;
    private final DataFolder folder;
    private final Gemm unfused;
    private final Promise promise;
    private final ProductJudge judge;
    private final Progress progress;
    private Matrix golden;
    private boolean bitwise;
    private boolean withinBound;
    private Boolean seedRule;
    private boolean freivalds = true;
    private double maxAbsErr;
    private double relErr;
    private long checkedRows;
    private long totalRows;
    private long notFinite;

    /**
     * @param unfused what makes the reference; null where the first output is it
     */
    private Verifier(
            Operands operands,
            DataFolder folder,
            Gemm unfused,
            Promise promise,
            Progress progress) {
        this.problem = folder.spec();
        this.operands = operands;
        this.folder = folder;
        this.unfused = unfused;
        this.promise = promise;
        this.judge = new ProductJudge(problem);
        this.progress = progress;
    }

    /** For outputs of the CPU. */
    public static Verifier withEngine(
            Operands operands, DataFolder folder, String engine, Progress progress) {
        Gemm gemm = Gemms.byName(engine);
        Promise promise = gemm.sameBitsForAnyRows() ? Promise.BITWISE : Promise.FLOAT64_BOUND;
        return new Verifier(operands, folder, gemm, promise, progress);
    }

    /** For outputs that the ranks have compared with their own unfused products. */
    public static Verifier ofCompared(
            Operands operands, DataFolder folder, Promise promise, Progress progress) {
        return new Verifier(operands, folder, null, promise, progress);
    }

    public static boolean goldenIsAffordable(ProblemSpec problem) {
        return (double) problem.groups() * problem.m() * problem.k() * problem.n()
                <= MAX_GOLDEN_STEPS;
    }

    /**
     * @param gatheredExact what the ranks found of their gathered A, null if they did not look
     * @param keptEqual whether the products that came with it equalled the measured ones
     * @param keptWithinBound whether they kept to the float64 bound
     */
    public Verification verify(Boolean gatheredExact, boolean keptEqual, boolean keptWithinBound) {
        return verify(gatheredExact, keptEqual, keptWithinBound, 0, folder.outputs());
    }

    /** The outputs of ranks {@code from} to {@code outputs} - 1 alone. */
    public Verification verify(
            Boolean gatheredExact,
            boolean keptEqual,
            boolean keptWithinBound,
            int from,
            int outputs) {
        bitwise = keptEqual;
        withinBound = keptWithinBound;
        progress.begin("verifying", problem.ranks());
        int step = problem.columnSharded() ? 1 : problem.ranksPerGroup();
        try (Arena arena = Arena.ofShared()) {
            golden = golden(arena);
            for (int first = from; first < outputs; ) {
                int end = Math.min(first - first % step + step, outputs);
                verifyPart(first, end);
                first = end;
            }
        }
        progress.end();
        return new Verification(
                promise,
                gatheredExact,
                bitwise,
                withinBound,
                seedRule,
                maxAbsErr,
                relErr,
                checkedRows,
                totalRows,
                checkedRows < totalRows && freivalds,
                notFinite);
    }

    /** Ranks of one group that hold the same B. */
    private void verifyPart(int first, int end) {
        int group = problem.groupOf(first);
        try (Arena arena = Arena.ofShared()) {
            Matrix a = Operands.gatheredA(operands, problem, group, arena);
            Matrix b = operands.b(first);
            Matrix reference =
                    unfused == null
                            ? output(first, arena)
                            : judge.unfused(unfused, a, b, problem.outType(), arena);
            judge(a, b, reference, group, first);
            for (int rank = first; rank < end; rank++) {
                compare(a, b, reference, group, rank);
                progress.advance(rank + 1);
            }
        }
    }

    private void compare(Matrix a, Matrix b, Matrix reference, int group, int rank) {
        try (Arena arena = Arena.ofShared()) {
            Matrix output = output(rank, arena);
            if (!reference.bitwiseEquals(output)) {
                bitwise = false;
                judge(a, b, output, group, rank);
            }
        }
    }

    private Matrix output(int rank, Arena arena) {
        return DataFolder.read(
                folder.output(rank), problem.outType(), problem.m(), problem.cols(rank), arena);
    }

    private void judge(Matrix a, Matrix b, Matrix c, int group, int rank) {
        ProductJudge.Judgement judgement = judge.judge(a, b, c);
        withinBound &= judgement.deviation().withinBound();
        maxAbsErr = Math.max(maxAbsErr, judgement.deviation().maxAbsErr());
        relErr = Math.max(relErr, judgement.deviation().relErr());
        checkedRows += judgement.checkedRows();
        totalRows += c.rows();
        notFinite += judgement.deviation().notFinite();
        freivalds &= judgement.freivalds();
        if (golden != null) {
            Matrix expected =
                    golden.block(
                            group * problem.m(),
                            problem.m(),
                            problem.firstCol(rank),
                            problem.cols(rank));
            seedRule = SeedRule.judge(expected, c).passed() && !Boolean.FALSE.equals(seedRule);
        }
    }

    /** Null where there is none. */
    private Matrix golden(Arena arena) {
        return Files.isRegularFile(folder.golden()) && goldenBelongsHere()
                ? DataFolder.read(
                        folder.golden(),
                        DType.FP32,
                        problem.groups() * problem.m(),
                        problem.n(),
                        arena)
                : null;
    }

    /** The user's own files have no golden; one of an earlier run may lie in the folder. */
    private boolean goldenBelongsHere() {
        return !problem.data().equals(ProblemSpec.FILES);
    }
}
