package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.compat.Fgcc.Path;
import dev.weft.fabric.World;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Every shape that the source is tested with; N is of all ranks together. */
class FgccShapesTest {

    @ParameterizedTest
    @CsvSource({
        // m, K, N, R, L, type, forced to HBM, expected path
        "256, 1024, 1024, 4, 2, bf16, false, SBUF",
        "256, 1024, 1024, 4, 2, fp32, false, SBUF",
        "256, 1024, 1024, 4, 1, bf16, false, SBUF",
        "256, 1024, 1024, 4, 2, bf16, true, HBM",
        "256, 1024, 1024, 4, 1, bf16, true, HBM",
        "512, 2048, 2048, 4, 2, bf16, false, SBUF",
        "512, 1024, 1024, 16, 2, bf16, false, SBUF",
        "1024, 4096, 4096, 4, 2, bf16, false, SBUF",
        "1024, 2048, 2048, 4, 2, bf16, true, HBM",
    })
    void shapesThatTakeSeconds(
            long m, long k, long n, int ranks, int lnc, String type, boolean hbm, Path path) {
        runAndJudge(m, k, n, ranks, lnc, DType.of(type), hbm, path);
    }

    @Tag("long")
    @ParameterizedTest
    @CsvSource({
        "512, 1024, 1024, 64, 1, bf16, false, SBUF",
        "512, 1024, 1024, 64, 2, bf16, false, SBUF",
        "2048, 4096, 8192, 16, 2, bf16, false, SBUF",
    })
    void shapesThatTakeLonger(
            long m, long k, long n, int ranks, int lnc, String type, boolean hbm, Path path) {
        runAndJudge(m, k, n, ranks, lnc, DType.of(type), hbm, path);
    }

    private static void runAndJudge(
            long m, long k, long n, int ranks, int lnc, DType type, boolean hbm, Path path) {
        try (Arena arena = Arena.ofShared();
                World world = World.threads(ranks)) {
            FgccProblem problem = FgccProblem.create(arena, ranks, m, k, n, type, type, 31);
            List<FgccResult<Matrix>> results =
                    world.call(
                            fabric -> {
                                FgccResult<Matrix> result =
                                        problem.call(fabric, hbm, FgccConfig.DEFAULT.withLnc(lnc));
                                problem.assertBitwise(result.product(), fabric.rank());
                                return result;
                            });
            int channels = FgccLayout.channels(lnc, ranks);
            long loc = m / lnc / channels;
            long[] shape =
                    path == Path.SBUF
                            ? new long[] {ranks, lnc, channels, loc, n / ranks}
                            : new long[] {ranks, channels, lnc, loc, n / ranks};
            for (int rank = 0; rank < ranks; rank++) {
                try (FgccResult<Matrix> result = results.get(rank)) {
                    assertEquals(path, result.path());
                    assertArrayEquals(shape, result.shape());
                    assertEquals(type, result.product().dtype());
                    problem.assertClose(result.product(), rank);
                }
            }
        }
    }
}
