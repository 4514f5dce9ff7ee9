package dev.weft.cli.verify;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.Progress;
import dev.weft.cli.data.DataFolder;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.options.ProblemOptions;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Reduction.Order;
import dev.weft.report.Promise;
import dev.weft.report.Verification;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The verifier on output files of which not all are there, or none is the CPU's own. */
class VerifierTest {

    @TempDir Path folder;

    @BeforeEach
    void writeOutputs() {
        Invocation run =
                Invocation.of(
                        "run",
                        "-n",
                        "3",
                        "--gm",
                        "24",
                        "--gk",
                        "32",
                        "--gn",
                        "16",
                        "--rhs",
                        "replicated",
                        "--warmup",
                        "0",
                        "--iterations",
                        "1",
                        "--data-dir",
                        folder.toString());
        assertEquals(0, run.code(), run.err());
    }

    private Verification verifyCompared(Promise promise, boolean comparedEqual) {
        DataFolder data = DataFolder.existing(folder, null);
        try (Arena arena = Arena.ofShared()) {
            return Verifier.ofCompared(
                            data.open(arena), data, promise, null, Order.WHOLE, new Progress(false))
                    .verify(true, comparedEqual, true);
        }
    }

    private void spoil(int rank) throws IOException {
        Path file = folder.resolve("output_rank" + rank + ".bin");
        try (RandomAccessFile output = new RandomAccessFile(file.toFile(), "rw")) {
            output.seek(400);
            output.writeInt(0x3F);
        }
    }

    @Test
    void whatTheRanksFoundOfTheirBitsCounts() {
        assertTrue(verifyCompared(Promise.BITWISE, true).passed());
        Verification differs = verifyCompared(Promise.BITWISE, false);
        assertFalse(differs.passed());
        assertTrue(differs.withinBound());
        assertTrue(verifyCompared(Promise.FLOAT64_BOUND, false).passed());
    }

    @Test
    void outputsThatDifferFromTheFirstAreJudgedThemselves() throws IOException {
        spoil(2);
        Verification wrong = verifyCompared(Promise.FLOAT64_BOUND, true);
        assertFalse(wrong.bitwiseEqualToUnfused());
        assertFalse(wrong.withinBound());
        assertEquals(48, wrong.checkedRows());
    }

    @Test
    void everyGroupIsJudgedWhateverItsSize() throws IOException {
        String groups = "-n 5 --replica-groups 4,0/1,3,2 --gm 24 --gk 32 --gn 16 --rhs replicated";
        Invocation run = Invocation.of(Invocation.shortRun(groups, folder).toArray(String[]::new));
        assertEquals(0, run.code(), run.err());
        Verification right = verifyCompared(Promise.BITWISE, true);
        assertTrue(right.passed());
        assertEquals(48, right.checkedRows(), "the rows of two groups");
        spoil(3);
        assertFalse(verifyCompared(Promise.BITWISE, true).passed());
        assertEquals(
                ExitCode.FAILED, Invocation.of("verify", "--data-dir", folder.toString()).code());
    }

    /** Each of three ranks has some columns of all 24 rows. */
    @Test
    void aRowOfSharedColumnsCountsOnce() throws IOException {
        String columns = "-n 3 --gm 24 --gk 32 --gn 17 --rhs column-sharded";
        Invocation run = Invocation.of(Invocation.shortRun(columns, folder).toArray(String[]::new));
        assertEquals(0, run.code(), run.err());
        Invocation verified = Invocation.of("verify", "--data-dir", folder.toString());
        assertEquals(0, verified.code(), verified.err());
        assertTrue(verified.out().contains("(24 of 24 rows)"), verified.out());
        spoil(2);
        Invocation wrong = Invocation.of("verify", "--data-dir", folder.toString());
        assertEquals(ExitCode.FAILED, wrong.code(), wrong.out());
    }

    @Test
    void theFirstIsJudgedToo() throws IOException {
        spoil(0);
        assertFalse(verifyCompared(Promise.FLOAT64_BOUND, true).withinBound());
    }

    @Test
    void ranksThatDidNotRunAreNotLookedFor() throws IOException {
        Files.delete(folder.resolve("output_rank1.bin"));
        Files.delete(folder.resolve("output_rank2.bin"));
        assertEquals(
                ExitCode.USAGE, Invocation.of("verify", "--data-dir", folder.toString()).code());
        Files.writeString(folder.resolve("outputs.txt"), "fp32 1 normal\n");
        assertEquals(0, Invocation.of("verify", "--data-dir", folder.toString()).code());
        Files.writeString(folder.resolve("outputs.txt"), "fp32 one normal\n");
        Invocation odd = Invocation.of("verify", "--data-dir", folder.toString());
        assertEquals(ExitCode.USAGE, odd.code());
        assertTrue(odd.err().contains("outputs.txt: cannot be understood"), odd.err());
    }

    /** The rows of one rank, in either order of sums. */
    @Test
    void aWrongSumOfOneRankIsFound() throws IOException {
        String sums = "--op matmul-reduce-scatter -n 3 --shards 4,0,20 --k-parts 9,0,23 --gn 16";
        for (Order order : OptionValues.ORDERS) {
            Invocation run =
                    Invocation.of(
                            Invocation.shortRun(sums + " --order " + order.label(), folder)
                                    .toArray(String[]::new));
            assertEquals(0, run.code(), run.err());
            assertTrue(verifySums(order).passed(), order.label());
            spoil(2);
            Verification wrong = verifySums(order);
            assertFalse(wrong.bitwiseEqualToUnfused());
            assertFalse(wrong.withinBound());
            assertEquals(24 + 20, wrong.checkedRows(), "all rows of the reference and of rank 2");
        }
    }

    private Verification verifySums(Order order) {
        ProblemOptions options = new ProblemOptions();
        options.op = ProblemSpec.SCATTER;
        options.ranks = 3;
        options.shards = new long[] {4, 0, 20};
        options.kParts = new long[] {9, 0, 23};
        options.n = 16L;
        DataFolder data = new DataFolder(folder, options.spec());
        try (Arena arena = Arena.ofShared()) {
            return Verifier.withEngine(
                            data.open(arena),
                            data,
                            Gemms.portable(),
                            null,
                            order,
                            null,
                            new Progress(false))
                    .verify(null, true, true);
        }
    }

    /** On two cores; beyond a minute its price is told, and it has to be asked for. */
    @Test
    void goldenIsMadeForAllPublishedShapes() {
        assertTrue(Verifier.goldenIsQuick(Verifier.goldenSeconds(shape(16384, 4096, 4096), 2)));
        double seconds = Verifier.goldenSeconds(shape(65536, 8192, 8192), 2);
        assertFalse(Verifier.goldenIsQuick(seconds), seconds + " s");
    }

    private static ProblemSpec shape(long m, long k, long n) {
        ProblemOptions options = new ProblemOptions();
        options.m = m;
        options.k = k;
        options.n = n;
        return options.spec();
    }
}
