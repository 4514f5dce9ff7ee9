package dev.weft.cli;

import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.gemm.Freivalds;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.report.Verification;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.util.Random;
import java.util.stream.LongStream;

/**
 * Judges the output files of all ranks: bit for bit against one single-threaded product of all
 * rows, and that product against float64: every row where that is affordable, else sampled rows and
 * Freivalds' check of all of them. An output that differs from the product is judged by itself.
 */
final class Verifier {

    /** Up to this many multiply-adds golden is computed whole (about a second per 4e9 here). */
    private static final double MAX_GOLDEN_STEPS = 0x1p33;

    /** Up to this many every row is compared with its float64 bound, otherwise a sample. */
    private static final double MAX_FULL_CHECK_STEPS = 0x1p30;

    private static final int SAMPLED_ROWS = 64;
    private static final int FREIVALDS_ROUNDS = 8;

    private final ProblemSpec problem;
    private final Operands operands;
    private final DataFolder folder;
    private final String engine;
    private final Progress progress;
    private boolean bitwise;
    private boolean withinBound = true;
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
        this.engine = engine;
        this.progress = progress;
    }

    static boolean goldenIsAffordable(ProblemSpec problem) {
        return (double) problem.groups() * problem.m() * problem.k() * problem.n()
                <= MAX_GOLDEN_STEPS;
    }

    /**
     * @param gatheredExact what the ranks found of their gathered A, null if they did not look
     * @param keptEqual whether the products that came with it equalled the measured ones
     */
    Verification verify(Boolean gatheredExact, boolean keptEqual) {
        bitwise = keptEqual;
        progress.begin("verifying", problem.ranks());
        int parts = problem.columnSharded() ? problem.ranksPerGroup() : 1;
        for (int group = 0; group < problem.groups(); group++) {
            for (int part = 0; part < parts; part++) {
                verifyPart(group, part);
            }
        }
        progress.end();
        return new Verification(
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
        Gemm gemm = Gemms.byName(engine);
        PackedB packed = gemm.pack(b, problem.transposeB(), arena);
        Matrix c = Matrix.allocate(arena, problem.outType(), a.rows(), packed.n());
        gemm.multiply(a, 0, a.rows(), packed, c, 0, gemm.scratch(a.cols(), packed.n(), arena));
        return c;
    }

    private void judge(Matrix a, Matrix b, Matrix c, int group, int rank, Arena arena) {
        Float64Oracle oracle = new Float64Oracle(a, b, problem.transposeB());
        boolean whole = (double) c.rows() * a.cols() * c.cols() <= MAX_FULL_CHECK_STEPS;
        long[] rows = whole ? null : sampledRows(c.rows());
        Deviation deviation = whole ? oracle.check(c) : oracle.check(c, rows);
        withinBound &= deviation.withinBound();
        maxAbsErr = Math.max(maxAbsErr, deviation.maxAbsErr());
        relErr = Math.max(relErr, deviation.relErr());
        checkedRows += whole ? c.rows() : rows.length;
        totalRows += c.rows();
        if (!whole) {
            freivalds &=
                    Freivalds.check(a, b, problem.transposeB(), c, FREIVALDS_ROUNDS, problem.seed())
                            .accepted();
        }
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

    /** The first and the last row of every shard, and random ones; a fixed seed repeats them. */
    private long[] sampledRows(long rows) {
        Random random = new Random(problem.seed());
        LongStream edges =
                java.util.stream.IntStream.range(0, problem.ranksPerGroup())
                        .filter(member -> problem.shards().rows(member) > 0)
                        .mapToLong(problem.shards()::firstRow)
                        .flatMap(row -> LongStream.of(row, Math.max(0, row - 1)));
        return LongStream.concat(
                        LongStream.concat(edges, LongStream.of(rows - 1)),
                        random.longs(SAMPLED_ROWS, 0, rows))
                .distinct()
                .sorted()
                .toArray();
    }
}
