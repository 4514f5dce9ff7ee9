package dev.weft.compat.command;

import dev.weft.cli.run.RankReport;
import dev.weft.cli.run.RoundTimes;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.gemm.Float64Oracle;
import dev.weft.report.Verification;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.Timeline;
import java.lang.foreign.Arena;
import java.util.List;

/** Operands and a right product, which a test spoils to see it judged. */
record Products(Matrix a, Matrix b, Matrix c, Matrix unfused) {

    static ProductRun run(ProductCommand source, int ranks, long m, long k, long n, Arena arena) {
        boolean ownB = source instanceof HelionCommand;
        ReplicaGroups all = ReplicaGroups.equal(ranks, 1);
        return new ProductRun(source, all, m, k, n, ownB, DType.FP32, arena);
    }

    static Products of(ProductRun run, Arena arena) {
        long cols = run.cols(0);
        Matrix a = Matrix.allocate(arena, DType.FP32, run.m() * run.ranks(), run.k());
        Matrix b =
                run.ownB()
                        ? Matrix.allocate(arena, DType.FP32, cols, run.k())
                        : Matrix.allocate(arena, DType.FP32, run.k(), cols);
        new NormalData(1, 0).fill(a);
        new NormalData(1, 1).fill(b);
        Float64Oracle oracle = new Float64Oracle(a, b, run.ownB());
        Matrix c = oracle.golden(0, a.rows(), arena, rows -> {});
        Matrix same = oracle.golden(0, a.rows(), arena, rows -> {});
        return new Products(a, b, c, same);
    }

    /** What rank 1 finds of C. */
    SourceReport report(ProductRun run, boolean exact) {
        Verification judged = run.judge(a, b, c, unfused, run.ownB() ? unfused : null, exact);
        long[] shape = {run.ranks(), run.m(), c.cols()};
        RankReport ran =
                new RankReport(
                        "ring",
                        "cpu",
                        "neon",
                        1,
                        1,
                        1,
                        List.of(new RoundTimes(0, 0, 0, 0, 0, -1, 0)),
                        exact,
                        true,
                        true,
                        List.of(),
                        List.of(),
                        new Timeline(1, 0, 5, List.of()));
        return new SourceReport(1, shape, "", 1, 0, judged, ran);
    }
}
