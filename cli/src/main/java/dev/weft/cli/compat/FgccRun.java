package dev.weft.cli.compat;

import dev.weft.cli.console.Progress;
import dev.weft.cli.verify.ProductJudge;
import dev.weft.cli.verify.ProductJudge.Judgement;
import dev.weft.compat.Fgcc;
import dev.weft.compat.Fgcc.Path;
import dev.weft.compat.FgccConfig;
import dev.weft.compat.FgccResult;
import dev.weft.fabric.Fabric;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Gemms;
import dev.weft.op.Timeline;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;

/**
 * One rank of {@code weft fgcc}: prepares, measures, and judges its own product by the source's
 * tolerance and Weft's own bound against float64, and bit for bit against the unfused product.
 *
 * @param n columns of B on all ranks of a group together; ranks differ by one column at most
 */
record FgccRun(
        int tpDegree,
        int groups,
        long m,
        long k,
        long n,
        DType type,
        boolean forceHbm,
        FgccConfig config,
        long seed,
        int warmup,
        int iterations) {

    private static final int VERIFYING_STEPS = 2;
    private static final double TOLERANCE = 1e-2;

    /**
     * What one rank found.
     *
     * @param bitwise whether the product is bit for bit the unfused one
     */
    record Report(
            int rank,
            Path path,
            int channels,
            long[] shape,
            Judgement judgement,
            boolean bitwise,
            long reachableBytes,
            long[] elapsedNs,
            Timeline timeline) {

        /** {@code |a - b| <= 1e-2 + 1e-2 max |b|}. */
        boolean withinTolerance() {
            Deviation deviation = judgement.deviation();
            return deviation.maxAbsErr() <= TOLERANCE + TOLERANCE * deviation.maxAbsExpected();
        }

        boolean passed() {
            return withinTolerance() && judgement.withinBound() && bitwise;
        }
    }

    /** All of one group's A, as every rank makes it from the seed. */
    Matrix a(int group, Arena arena) {
        Matrix a = Matrix.allocate(arena, type, m * tpDegree, k);
        new NormalData(seed, 2L * group).fill(a);
        return a;
    }

    private Matrix rhs(int group, int member, Arena arena) {
        Shards cols = Shards.even(n, tpDegree);
        Matrix rhs = Matrix.allocate(arena, type, k, cols.rows(member));
        new NormalData(seed, 2L * group + 1).fill(rhs, 0, cols.firstRow(member), n);
        return rhs;
    }

    /**
     * @param a all of this rank's group's A
     * @param progress told how far the measuring and then the verifying have come
     */
    Report run(Fabric world, Matrix a, Progress progress) {
        int group = world.rank() / tpDegree;
        int member = world.rank() % tpDegree;
        Matrix lhs = a.rows(member * m, m);
        try (Arena arena = Arena.ofShared()) {
            Matrix rhs = rhs(group, member, arena);
            try (Fgcc<Matrix> prepared =
                    Fgcc.prepare(world, m, k, type, rhs, tpDegree, groups, forceHbm, config)) {
                long[] elapsedNs = measure(world, prepared, lhs, progress);
                FgccResult<Matrix> result = prepared.call(lhs);
                Matrix product = result.product();
                ProductJudge judge = new ProductJudge(Shards.even(a.rows(), tpDegree), false, seed);
                progress.begin("verifying", VERIFYING_STEPS);
                Judgement judgement = judge.judge(a, rhs, product);
                progress.advance(1);
                Matrix unfused = judge.unfused(Gemms.auto(), a, rhs, type, arena);
                return new Report(
                        world.rank(),
                        result.path(),
                        result.channels(),
                        result.shape(),
                        judgement,
                        product.bitwiseEquals(unfused),
                        prepared.operator().reachableBytes(),
                        elapsedNs,
                        prepared.operator().lastResult().timeline());
            }
        }
    }

    private long[] measure(Fabric world, Fgcc<Matrix> prepared, Matrix lhs, Progress progress) {
        long[] elapsedNs = new long[iterations];
        progress.begin("measuring", (long) warmup + iterations);
        for (int round = -warmup; round < iterations; round++) {
            world.barrier();
            prepared.call(lhs);
            if (round >= 0) {
                elapsedNs[round] = prepared.operator().lastResult().elapsedNs();
            }
            progress.advance(warmup + round + 1);
        }
        return elapsedNs;
    }
}
