package dev.weft.cli.verify;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Shards;
import dev.weft.report.JsonText;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Products with sums that are too large for their type. */
class OverflowTest {

    private static final int ROWS = 12;
    private static final int K = 8;
    private static final int COLS = 6;

    @TempDir Path folder;

    /** Rows of one large value: every third all positive, every third of both signs, and small. */
    private Path files(DType type, float large) throws IOException {
        Path file = folder.resolve("ab.safetensors");
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.allocate(arena, type, ROWS, K);
            Matrix b = Matrix.allocate(arena, type, K, COLS);
            for (int row = 0; row < ROWS; row++) {
                for (int k = 0; k < K; k++) {
                    float sign = row % 3 == 1 && k >= K / 2 ? -1 : 1;
                    a.set(row, k, row % 3 == 2 ? k : sign * large);
                }
            }
            for (int k = 0; k < K; k++) {
                for (int col = 0; col < COLS; col++) {
                    b.set(k, col, 1 + col);
                }
            }
            MatrixFiles.writeSafetensors(file, Map.of("a", a, "b", b));
        }
        return file;
    }

    private Invocation run(Path file, String more) {
        List<String> command = new ArrayList<>(List.of("run"));
        command.addAll(List.of("--a", file + ":a", "--b", file + ":b"));
        command.addAll(List.of("--data-dir", folder.resolve("out").toString()));
        command.addAll(List.of("--json", folder.resolve("r.json").toString()));
        command.addAll(List.of((more + " --warmup 0 --iterations 1 --npy").split(" ")));
        return Invocation.of(command.toArray(String[]::new));
    }

    @ParameterizedTest
    @CsvSource({
        "FP32, 3.0e38, fp32, scalar",
        "FP32, 3.0e38, fp32, native",
        "FP32, 3.0e38, bf16, native",
        "BF16, 3.38e38, fp32, scalar",
        "BF16, 3.38e38, bf16, native",
        "FP16, 65504, fp16, scalar",
        "FP16, 65504, fp16, native"
    })
    void infinitiesOfTheUnfusedProductPass(DType type, float large, String out, String engine)
            throws IOException {
        Path file = files(type, large);
        Invocation run =
                run(file, "-n 3 --algorithm ring --engine " + engine + " --out-dtype " + out);
        assertEquals(0, run.code(), run.out() + run.err());
        assertTrue(run.out().contains("Verification PASSED"), run.out());
        assertTrue(run.out().contains(" are infinite or NaN, as expected"), run.out());
        assertFalse(run.out().contains("err NaN") || run.out().contains("err Inf"), run.out());
        Object record = JsonText.parse(Files.readString(folder.resolve("r.json")));
        assertEquals(true, JsonText.at(record, "verification.passed"));
        long notFinite = ((Number) JsonText.at(record, "verification.notFinite")).longValue();
        assertTrue(notFinite >= ROWS / 3 * COLS, "all of the first third: " + notFinite);
    }

    @Test
    void aWrongInfinityStillFails() throws IOException {
        String data = folder.resolve("out").toString();
        String problem = "run -n 2 --gm 12 --gk 8 --gn 6 --warmup 0 --iterations 1 --data-dir ";
        assertEquals(0, Invocation.of((problem + data).split(" ")).code());
        Path output = folder.resolve("out").resolve("output_rank1.bin");
        try (RandomAccessFile bytes = new RandomAccessFile(output.toFile(), "rw")) {
            bytes.seek(2L * 6 * Float.BYTES);
            bytes.write(new byte[] {0, 0, (byte) 0x80, 0x7f});
        }
        Invocation verify = Invocation.of("verify", "--data-dir", data);
        assertEquals(ExitCode.FAILED, verify.code(), verify.out() + verify.err());
        assertTrue(verify.err().contains("bound is exceeded"), verify.err());
    }

    /** Too large to compare every element: only the first column of A is not zero. */
    @Test
    void rowsWithInfinitiesOfALargeProductAreLookedAt() {
        int rows = 1024;
        int k = 1100;
        int cols = 1024;
        ProblemSpec problem =
                new ProblemSpec(
                        1,
                        ReplicaGroups.equal(1, 1),
                        Shards.even(rows, 1),
                        k,
                        cols,
                        DType.FP32,
                        DType.FP32,
                        DType.FP32,
                        false,
                        false,
                        "files",
                        19,
                        null,
                        null,
                        null);
        try (Arena arena = Arena.ofShared()) {
            Matrix a = Matrix.allocate(arena, DType.FP32, rows, k);
            Matrix b = Matrix.allocate(arena, DType.FP32, k, cols);
            Matrix c = Matrix.allocate(arena, DType.FP32, rows, cols);
            for (int col = 0; col < cols; col++) {
                b.set(0, col, 1 + col % 7);
            }
            for (int row = 0; row < rows; row++) {
                a.set(row, 0, row % 100 == 50 ? 1e38f : row);
                for (int col = 0; col < cols; col++) {
                    c.set(row, col, a.get(row, 0) * b.get(0, col));
                }
            }
            ProductJudge judge = new ProductJudge(problem, 0);
            ProductJudge.Judgement right = judge.judge(a, b, c);
            assertTrue(right.withinBound(), right.deviation().describe());
            assertTrue(right.checkedRows() < rows, "a sample of " + right.checkedRows());
            assertTrue(right.deviation().notFinite() > 0);
            for (int row : new int[] {501, 550}) {
                float before = c.get(row, 0);
                c.set(row, 0, Float.POSITIVE_INFINITY);
                assertFalse(judge.judge(a, b, c).withinBound(), "row " + row);
                c.set(row, 0, before + before / 4 + 1);
                assertFalse(judge.judge(a, b, c).withinBound(), "row " + row);
                c.set(row, 0, before);
            }
        }
    }
}
