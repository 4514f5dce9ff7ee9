package dev.weft.cli.compat;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Progress;
import dev.weft.compat.RingAllGatherMatmul;
import dev.weft.fabric.Fabric;
import dev.weft.gemm.Float64Oracle;
import dev.weft.op.Timeline;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;

/**
 * One rank of the ring tutorial's runner: makes the inputs, which are the same on every rank, goes
 * once round the ring, and compares the output with a reference of its own. The reference is the
 * float64 product, rounded to fp32 whatever the output's type is; it shares no code with the
 * engine.
 */
record RingRun(long m, long k, long nLocal, DType dtype, long seed) {

    private static final double MAX_REL_ERR = 0.01;
    private static final double NEVER_ZERO = 1e-9;

    /** What one rank found. */
    record Report(int rank, long[] shape, double maxAbsErr, double relErr, Timeline timeline) {

        long elapsedNs() {
            return timeline.elapsedNs();
        }

        boolean passed() {
            return relErr < MAX_REL_ERR;
        }

        String line() {
            return text(
                    "[rank %d] shape=%s max_abs_err=%.6g rel_err=%.6g %s",
                    rank, Arrays.toString(shape), maxAbsErr, relErr, passed() ? "PASS" : "FAIL");
        }
    }

    /** What makes another process run the same. */
    List<String> options() {
        return List.of(
                "--m=" + m,
                "--k=" + k,
                "--n-local=" + nLocal,
                "--dtype=" + dtype.label(),
                "--seed=" + seed);
    }

    /** All of A, as every rank makes it from the seed. */
    Matrix a(int ranks, Arena arena) {
        Matrix a = Matrix.allocate(arena, dtype, m * ranks, k);
        new NormalData(seed, 0).fill(a);
        return a;
    }

    /**
     * @param a all of A; of it the rank gives its own rows to the ring, the rest is for the
     *     reference
     * @param progress told how far the reference has come
     */
    Report run(Fabric fabric, Matrix a, Progress progress) {
        int rank = fabric.rank();
        try (Arena arena = Arena.ofShared()) {
            Matrix b = Matrix.allocate(arena, dtype, k, nLocal);
            new NormalData(seed, 1).fill(b, 0, rank * nLocal, nLocal * fabric.size());
            try (RingAllGatherMatmul<Matrix> ring =
                    RingAllGatherMatmul.prepare(fabric, m, dtype, b)) {
                Matrix output = ring.call(a.rows(rank * m, m));
                Timeline timeline = ring.operator().lastResult().timeline();
                progress.begin("verifying", a.rows());
                Matrix expected =
                        new Float64Oracle(a, b, false)
                                .golden(0, a.rows(), arena, progress::advance);
                return judge(rank, fabric.size(), output, expected, timeline);
            }
        }
    }

    static Report judge(int rank, int ranks, Matrix actual, Matrix expected, Timeline timeline) {
        double maxAbsErr = 0;
        double maxExpected = 0;
        for (long row = 0; row < actual.rows(); row++) {
            for (long col = 0; col < actual.cols(); col++) {
                float wanted = expected.get(row, col);
                double error = Math.abs((double) actual.get(row, col) - wanted);
                maxAbsErr = error <= maxAbsErr ? maxAbsErr : orInfinite(error);
                maxExpected = Math.max(maxExpected, Math.abs(wanted));
            }
        }
        double relErr = maxAbsErr / (maxExpected + NEVER_ZERO);
        long[] shape = {ranks, actual.rows() / ranks, actual.cols()};
        return new Report(rank, shape, maxAbsErr, relErr, timeline);
    }

    /** A value that is no number must not pass. */
    private static double orInfinite(double error) {
        return Double.isNaN(error) ? Double.POSITIVE_INFINITY : error;
    }
}
