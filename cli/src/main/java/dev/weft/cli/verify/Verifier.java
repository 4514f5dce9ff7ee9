package dev.weft.cli.verify;

import dev.weft.cli.console.Progress;
import dev.weft.cli.data.BlockOperands;
import dev.weft.cli.data.DataFolder;
import dev.weft.cli.data.EpilogueData;
import dev.weft.cli.data.Operands;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.verify.ProductJudge.Judgement;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Loss;
import dev.weft.plan.Chunks;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.step.StepChecker;
import dev.weft.plan.step.StepChecker.SummedRows;
import dev.weft.report.Promise;
import dev.weft.report.Verification;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.util.List;

/**
 * Checks the output files of all ranks: bit for bit against a reference, and the reference against
 * float64, as {@link ProductJudge} does. The reference is one single-threaded product of all rows,
 * or the sums in the order that was requested. For outputs of GPUs, which sum in another order, it
 * is the first rank's output, and each rank has compared its output with its own unfused product.
 * An output that differs from the reference is checked separately; the promise says whether it may
 * differ.
 *
 * <p>With an epilogue, the product in fp32 is checked against float64. The reference is the
 * epilogue of that, checked by {@link EpilogueJudge}, and every output must have its bits. On GPUs
 * the ranks do so themselves.
 *
 * @param unfused the engine of the reference; null if the first output is the reference
 * @param epilogue its steps; null if there is none
 * @param algorithm how products were summed, if in an order of its own; else it may be null
 */
public record Verifier(
        Operands operands,
        DataFolder folder,
        Gemm unfused,
        String epilogue,
        Order order,
        ReductionWriter algorithm,
        Promise promise,
        Progress progress) {

    /** Multiply-adds in float64 that a core of some years ago does in a second. */
    private static final double GOLDEN_STEPS_PER_SECOND = 3e9;

    private static final double MOST_GOLDEN_SECONDS = 60;

    /** For outputs of the CPU. */
    public static Verifier withEngine(
            Operands operands,
            DataFolder folder,
            Gemm engine,
            String epilogue,
            Order order,
            ReductionWriter algorithm,
            Progress progress) {
        boolean promised = engine.bits() != Gemm.Bits.NONE;
        Promise promise = promised ? Promise.BITWISE : Promise.FLOAT64_BOUND;
        return new Verifier(
                operands, folder, engine, epilogue, order, algorithm, promise, progress);
    }

    /**
     * For outputs that the ranks have compared with their own unfused products. If there is an
     * epilogue, they have checked the sums and their epilogue, too: it remains to check that all
     * have the same.
     */
    public static Verifier ofCompared(
            Operands operands,
            DataFolder folder,
            Promise promise,
            String epilogue,
            Order order,
            Progress progress) {
        return new Verifier(operands, folder, null, epilogue, order, null, promise, progress);
    }

    private ProblemSpec problem() {
        return folder.spec();
    }

    /** About how long golden takes on this machine. */
    public static double goldenSeconds(ProblemSpec problem) {
        return goldenSeconds(problem, Runtime.getRuntime().availableProcessors());
    }

    static double goldenSeconds(ProblemSpec problem, int cores) {
        double steps = (double) problem.groups() * problem.m() * problem.k() * problem.n();
        return steps / GOLDEN_STEPS_PER_SECOND / cores;
    }

    /** Whether golden is made without being requested. */
    public static boolean goldenIsQuick(double seconds) {
        return seconds <= MOST_GOLDEN_SECONDS;
    }

    /**
     * @param gatheredExact whether the ranks found gathered A to be exact; null if they did not
     *     check
     * @param keptEqual whether the products that came with it equalled the measured ones
     * @param keptWithinBound whether they kept to the float64 bound
     */
    public Verification verify(Boolean gatheredExact, boolean keptEqual, boolean keptWithinBound) {
        return verify(gatheredExact, keptEqual, keptWithinBound, 0, folder.outputs());
    }

    /** Checks only the outputs of ranks {@code from} to {@code outputs} - 1. */
    public Verification verify(
            Boolean gatheredExact,
            boolean keptEqual,
            boolean keptWithinBound,
            int from,
            int outputs) {
        Verification found =
                ofNoRows(problem().gathers() ? gatheredExact : null, keptEqual, keptWithinBound);
        progress.begin("verifying", problem().ranks());
        int done = 0;
        try (Arena arena = Arena.ofShared()) {
            Matrix golden = golden(arena);
            for (List<Integer> group : problem().replicaGroups().groups()) {
                List<Integer> asked =
                        group.stream().filter(rank -> rank >= from && rank < outputs).toList();
                if (!asked.isEmpty()) {
                    found = found.and(verifyGroup(asked, golden));
                }
                done += asked.size();
                progress.advance(done);
            }
        }
        progress.end();
        return found;
    }

    private Verification verifyGroup(List<Integer> ranks, Matrix golden) {
        if (!problem().columnSharded()) {
            return verifyPart(ranks, golden);
        }
        // Each has its own columns of the same rows.
        return ranks.stream()
                .map(rank -> verifyPart(List.of(rank), golden))
                .reduce(Verification::andColumns)
                .orElseThrow();
    }

    private Verification ofNoRows(Boolean gatheredExact, boolean bitwise, boolean withinBound) {
        return new Verification(
                promise, gatheredExact, bitwise, withinBound, null, 0, 0, 0, 0, false, 0);
    }

    /** Checks ranks of one group that hold the same B. */
    private Verification verifyPart(List<Integer> ranks, Matrix golden) {
        Verification found = ofNoRows(null, true, true);
        int first = ranks.getFirst();
        try (Arena arena = Arena.ofShared()) {
            Matrix a = Operands.gatheredA(operands, problem(), first, arena);
            Matrix b = Operands.wholeB(operands, problem(), first, arena);
            boolean comparedByRanks = unfused == null && !problem().gathers();
            if (comparedByRanks && epilogue != null) {
                return found;
            }
            Matrix reference = null;
            if (!comparedByRanks) {
                reference = reference(a, b, first, arena);
                if (epilogue == null || unfused != null) {
                    found = found.and(judge(a, b, reference, true, first, 0, golden));
                }
                if (epilogue != null && unfused != null) {
                    EpilogueData data = EpilogueData.of(epilogue, problem(), first, arena);
                    Matrix finished = data.finished(reference, problem().outType(), arena);
                    double worst = new EpilogueJudge(data).worst(reference, finished);
                    found = found.and(ofNoRows(null, true, worst <= 1));
                    reference = finished;
                }
            }
            for (int rank : ranks) {
                found = found.and(compare(a, b, reference, rank, golden));
            }
        }
        return found;
    }

    /**
     * @param reference null if each rank has compared its rows
     */
    private Verification compare(Matrix a, Matrix b, Matrix reference, int rank, Matrix golden) {
        try (Arena arena = Arena.ofShared()) {
            Matrix output = output(rank, arena);
            long first = problem().firstRowOfC(rank);
            boolean alone = reference == null;
            if (alone
                    ? output.rows() == 0
                    : reference.rows(first, output.rows()).equalsUpToNaN(output)) {
                return ofNoRows(null, true, true);
            }
            if (epilogue == null) {
                Matrix rows = a.rows(first, output.rows());
                return judge(rows, b, output, alone, rank, first, golden);
            }
            return ofNoRows(null, promise != Promise.BITWISE, promise != Promise.BITWISE);
        }
    }

    private Matrix reference(Matrix a, Matrix b, int rank, Arena arena) {
        if (unfused == null) {
            return output(rank, arena);
        }
        ProductJudge judge = new ProductJudge(problem(), rank);
        DType type = epilogue == null ? problem().outType() : DType.FP32;
        if (order == Order.WHOLE) {
            return judge.unfused(unfused, a, rhs(b, rank), type, arena);
        }
        Matrix reference = Matrix.allocate(arena, type, a.rows(), problem().cols(rank));
        for (SummedRows rows : summedRows(rank)) {
            try (Arena scratch = Arena.ofShared()) {
                Matrix own = a.rows(rows.firstRow(), rows.rows());
                Matrix sums = judge.summed(unfused, own, rhs(b, rank), rows.order(), scratch);
                reference
                        .rows(rows.firstRow(), rows.rows())
                        .copyFrom(sums.converted(scratch, type));
            }
        }
        return reference;
    }

    private ProductJudge.Rhs rhs(Matrix b, int rank) {
        return operands instanceof BlockOperands blocks
                ? (gemm, from, end, arena) -> blocks.pack(gemm, rank, from, end, arena)
                : new ProductJudge(problem(), rank).of(b);
    }

    /** How the rows of the group's C are summed, each once: from its plan, or by rank. */
    private List<SummedRows> summedRows(int rank) {
        Shards kParts = problem().kParts(rank);
        if (order != Order.OWN) {
            return List.of(new SummedRows(0, 0, problem().m(), OrderedSums.of(order, kParts)));
        }
        Shards rows = problem().shards(rank);
        long most = Math.max(1, rows.maxRows());
        Chunks chunks = Chunks.byRows(rows, problem().cols(rank), most, most);
        boolean all = problem().sums().all();
        ReductionRequest request = new ReductionRequest(chunks, kParts, all, order);
        return StepChecker.orders(algorithm.plans(request), request.placement(), (r, o) -> true)
                .stream()
                .filter(each -> !all || each.rank() == 0)
                .toList();
    }

    /**
     * Half a unit of each rank's sums, which are at most |A| x |B| together; or of a GPU's sums.
     */
    private Loss lostByParts(int rank) {
        if (problem().fp8() != null && unfused == null) {
            return ProductJudge.LOST_BY_FP8_SUMS;
        }
        return order == Order.BY_RANK_BF16
                ? Loss.ofParts(DType.BF16, problem().members(rank).size())
                : Loss.NONE;
    }

    private Matrix output(int rank, Arena arena) {
        return DataFolder.read(
                folder.output(rank),
                problem().outType(),
                problem().rowsOfC(rank),
                EpilogueData.cols(epilogue, problem(), rank),
                arena);
    }

    /**
     * @param bitwise whether C is the reference
     * @param firstRow the first row of C
     */
    private Verification judge(
            Matrix a, Matrix b, Matrix c, boolean bitwise, int rank, long firstRow, Matrix golden) {
        Judgement judged;
        try (Arena arena = Arena.ofShared()) {
            Matrix own = problem().blocks() == null ? a : BlockOperands.valuesOfA(a, arena);
            judged = new ProductJudge(problem(), rank).judge(own, b, c, lostByParts(rank));
        }
        return new Verification(
                promise,
                null,
                bitwise,
                judged.deviation().withinBound(),
                seedRule(c, rank, firstRow, golden),
                judged.deviation().maxAbsErr(),
                judged.deviation().relErr(),
                judged.checkedRows(),
                c.rows(),
                judged.checkedRows() < c.rows() && judged.freivalds(),
                judged.deviation().notFinite());
    }

    /** Null if there is no golden. */
    private Boolean seedRule(Matrix c, int rank, long firstOfC, Matrix golden) {
        if (golden == null) {
            return null;
        }
        long firstRow = problem().groupOf(rank) * problem().m() + firstOfC;
        long rows = c.rows();
        long firstCol = problem().firstCol(rank);
        Matrix expected = golden.block(firstRow, rows, firstCol, problem().cols(rank));
        return SeedRule.judge(expected, c, problem().k()).passed();
    }

    /** Null if there is none. */
    private Matrix golden(Arena arena) {
        return Files.isRegularFile(folder.golden()) && goldenBelongsHere()
                ? DataFolder.read(
                        folder.golden(),
                        DType.FP32,
                        problem().groups() * problem().m(),
                        problem().n(),
                        arena)
                : null;
    }

    /**
     * Whether golden applies. The user's own files, quantized inputs and results of an epilogue
     * have none, and the seed's rule does not cover parts in bf16; one of an earlier run may be in
     * the folder.
     */
    private boolean goldenBelongsHere() {
        return !problem().data().equals(ProblemSpec.FILES)
                && epilogue == null
                && !problem().quantizes()
                && order != Order.BY_RANK_BF16;
    }
}
