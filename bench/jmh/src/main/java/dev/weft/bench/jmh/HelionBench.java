package dev.weft.bench.jmh;

import dev.weft.compat.Helion;
import dev.weft.compat.HelionProgress;
import dev.weft.compat.HelionResult;
import dev.weft.compat.HelionShared;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;

/**
 * The Helion example's test at full size: M 4096, N 6656, K 16384, bf16, 4 and 8 ranks. Gathered A
 * is compared byte for byte, the product in a few rows with a float64 one.
 *
 * <pre>
 * ./weft java -cp bench/jmh/target/benchmarks.jar dev.weft.bench.jmh.HelionBench \
 *     [M N K splits calls ranks...]
 * </pre>
 */
public final class HelionBench {

    private static final long[] DEFAULTS = {4096, 6656, 16384, 4, 1, 4, 8};
    private static final int FIRST_RANKS = 5;

    private final long m;
    private final long n;
    private final long k;
    private final int splits;
    private final int calls;

    private HelionBench(long[] numbers) {
        this.m = numbers[0];
        this.n = numbers[1];
        this.k = numbers[2];
        this.splits = Math.toIntExact(numbers[3]);
        this.calls = Math.toIntExact(numbers[4]);
    }

    public static void main(String[] arguments) {
        long[] numbers = Arrays.stream(arguments).mapToLong(Long::parseLong).toArray();
        numbers = numbers.length == 0 ? DEFAULTS : numbers;
        if (numbers.length <= FIRST_RANKS) {
            throw new IllegalArgumentException(
                    numbers.length + " numbers: expected M N K splits calls and ranks");
        }
        try (Arena arena = Arena.ofShared()) {
            long[] rankCounts = Arrays.copyOfRange(numbers, FIRST_RANKS, numbers.length);
            new HelionBench(numbers).run(rankCounts, arena);
        }
    }

    private void run(long[] rankCounts, Arena arena) {
        Matrix a = Matrix.allocate(arena, DType.BF16, m, k);
        // [N, K]: the example's B is a transposed view of such a one.
        Matrix b = Matrix.allocate(arena, DType.BF16, n, k);
        new NormalData(42, 0).fill(a);
        new NormalData(42, 1).fill(b);
        for (long ranks : rankCounts) {
            measure(Math.toIntExact(ranks), a, b);
        }
    }

    private void measure(int ranks, Matrix a, Matrix b) {
        if (m % ranks != 0) {
            throw new IllegalArgumentException(
                    "M " + m + ": expected a multiple of the " + ranks + " ranks");
        }
        try (World world = World.threads(ranks)) {
            List<long[]> ns = world.call(fabric -> rank(fabric, a, b));
            for (int call = 0; call < calls; call++) {
                int number = call;
                double seconds =
                        ns.stream().mapToLong(each -> each[number]).max().orElseThrow() * 1e-9;
                double gflops = 2e-9 * m * n * k * ranks / seconds;
                System.out.printf(
                        "W %d, M %d, N %d, K %d, bf16, %d splits, call %d: %.3f s, %.1f GFLOP/s of"
                                + " all ranks%n",
                        ranks, m, n, k, splits, call, seconds, gflops);
            }
        }
    }

    private long[] rank(Fabric fabric, Matrix a, Matrix b) {
        long rows = m / fabric.size();
        long[] ns = new long[calls];
        HelionProgress progress = Helion.progress(fabric, splits);
        try (Arena arena = Arena.ofShared();
                HelionShared<Matrix> shared = Helion.empty(fabric, rows, k, DType.BF16)) {
            Matrix aOut = Matrix.allocate(arena, DType.BF16, m, k);
            shared.local().copyFrom(a.rows(fabric.rank() * rows, rows));
            for (int call = 0; call < calls; call++) {
                aOut.data().fill((byte) 0);
                fabric.barrier();
                long start = System.nanoTime();
                HelionResult<Matrix> result =
                        Helion.allGatherMatmul(fabric, shared, b, true, aOut, progress, splits);
                ns[call] = System.nanoTime() - start;
                check(fabric, a, b, result);
            }
        }
        return ns;
    }

    /** Rank r looks at rows of its own choice, so that together they look at many. */
    private void check(Fabric fabric, Matrix a, Matrix b, HelionResult<Matrix> result) {
        if (!result.aOut().bitwiseEquals(a)) {
            throw new IllegalStateException("gathered A differs on rank " + fabric.rank());
        }
        long own = (fabric.rank() * 509L + 13) % m;
        Deviation deviation = new Float64Oracle(a, b, true).check(result.c(), own, m - 1 - own);
        if (!deviation.withinBound()) {
            throw new IllegalStateException(
                    "wrong product on rank " + fabric.rank() + ": " + deviation.describe());
        }
        fabric.worked();
    }
}
