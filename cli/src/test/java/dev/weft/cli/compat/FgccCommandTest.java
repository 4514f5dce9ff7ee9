package dev.weft.cli.compat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.verify.ProductJudge;
import dev.weft.compat.Fgcc;
import dev.weft.gemm.Deviation;
import dev.weft.gemm.Float64Oracle;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FgccCommandTest {

    @TempDir Path folder;

    private static Invocation fgcc(String arguments) {
        return Invocation.of(("fgcc --warmup 1 --iterations 2 " + arguments).split(" "));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "-n 4 --lnc 2 --m 16 --k 65 --n 40 | path SBUF | shape=[4, 2, 2, 4, 10]",
                "-n 4 --lnc 2 --m 16 --k 65 --n 40 --force-hbm | path HBM (forced)"
                        + " | shape=[4, 2, 2, 4, 10]",
                "-n 4 --m 3 --k 65 --n 41 --dtype fp32 | path SBUF | shape=[4, 1, 1, 3, 11]",
                "-n 4 --m 3 --k 65 --n 41 --on-chip-bytes 100 | path HBM | shape=[4, 1, 1, 3, 11]",
                "-n 6 --groups 3 --lnc 2 --m 6 --k 9 --n-global 8 --seed 2 | tp_degree 2"
                        + " | shape=[2, 2, 1, 3, 4]",
                "-n 64 --lnc 2 --m 8 --k 20 --n 64 | 4 channels | shape=[64, 2, 4, 1, 1]"
            })
    void aRunShowsPathAndShapeAndPassesOnEveryRank(String arguments, String head, String shape) {
        Invocation run = fgcc(arguments);
        assertEquals(0, run.code(), run.err() + run.out());
        assertTrue(run.out().contains(head), run.out());
        assertTrue(run.out().contains(shape), run.out());
        long ranks = Long.parseLong(arguments.split(" ")[1]);
        assertEquals(
                ranks,
                run.out()
                        .lines()
                        .filter(line -> line.endsWith("bitwise the unfused product PASS"))
                        .count(),
                run.out());
        assertTrue(run.out().contains("[INFO] Median "), run.out());
    }

    /** Large enough that a sample of rows and Freivalds judge. */
    @Test
    void aLargeProductIsJudgedBySample() {
        Invocation run = fgcc("-n 2 --m 512 --k 4096 --n 520 --lnc 2");
        assertEquals(0, run.code(), run.err() + run.out());
        assertFalse(run.out().contains("(1024 rows)"), run.out());
    }

    @Test
    void theOutcomeCanBeWrittenAsJson() throws IOException {
        Path file = folder.resolve("fgcc.json");
        assertEquals(0, fgcc("-n 2 --m 4 --k 8 --n 6 --quiet --json " + file).code());
        String json = Files.readString(file);
        assertTrue(json.contains("\"schema\" : \"weft.fgcc/1\""), json);
        assertTrue(json.contains("\"path\" : \"SBUF\""), json);
        assertTrue(json.contains("\"shape\" : [ 2, 1, 1, 4, 3 ]"), json);
        assertTrue(json.contains("\"bitwiseEqualToUnfused\" : true"), json);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "-n 3 | tp_degree 3: expected an even number",
                "-n 4 --lnc 2 --m 6 | M = 24 (m = 6 on each of R = 4 ranks) is not divisible by"
                        + " R*L*C = 4*2*2 = 16",
                "-n 4 --groups 3 | --groups 3: expected a number that divides the 4 ranks",
                "-n 0 | --n-ranks 0: expected 1 to 4096",
                "--lnc 3 | lnc 3: expected 1 or 2",
                "--on-chip-bytes -1 | on-chip memory of -1 bytes",
                "--n 0 | --n-global 0: expected 1 to",
                "--iterations 0 | --iterations 0",
                "--json /nowhere/r.json | --json /nowhere/r.json: expected a file in a folder"
            })
    void wrongUsageIsOneLine(String arguments, String expected) {
        Invocation.of(("fgcc " + arguments).split(" ")).assertRefused(expected);
    }

    @Test
    void aRankThatIsNotBitwiseOrFarOffFails() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.allocate(arena, DType.FP32, 4, 5);
            Matrix b = Matrix.allocate(arena, DType.FP32, 5, 3);
            new NormalData(1, 0).fill(a);
            new NormalData(1, 1).fill(b);
            Float64Oracle oracle = new Float64Oracle(a, b, false);
            Matrix c = oracle.golden(0, 4, arena, rows -> {});
            var right = oracle.check(c);
            assertTrue(passed(right, true, true));
            assertFalse(passed(right, true, false));
            assertFalse(passed(right, false, true));
            c.set(3, 2, c.get(3, 2) + 1);
            var wrong = oracle.check(c);
            assertFalse(passed(wrong, true, true));
        }
    }

    private static boolean passed(Deviation deviation, boolean allRowsHold, boolean bitwise) {
        long[] shape = {2, 1, 1, 2, 3};
        long[] ns = {1};
        var judgement = new ProductJudge.Judgement(deviation, 4, allRowsHold);
        return new FgccRun.Report(0, Fgcc.Path.SBUF, 1, shape, judgement, bitwise, 0, ns, null)
                .passed();
    }
}
