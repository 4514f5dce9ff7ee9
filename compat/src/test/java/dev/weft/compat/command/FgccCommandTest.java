package dev.weft.compat.command;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FgccCommandTest {

    @TempDir Path folder;

    private static Invocation fgcc(String arguments) {
        return Invocation.of(("fgcc --warmup 0 --iterations 1 " + arguments).split(" "));
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
                "-n 6 --replica-groups 5,1/0,3/4,2 --lnc 2 --m 6 --k 9 --n-global 8 | tp_degree 2"
                        + " | shape=[2, 2, 1, 3, 4]",
                "-n 6 --replica-groups 5,1/0,3,4,2 --lnc 2 --m 8 --k 9 --n-global 8 | tp_degree 2/4"
                        + " | shape=[4, 2, 2, 2, 2]",
                "-n 6 --replica-groups 5,1/0,3,4,2 --lnc 2 --m 8 --k 9 --n-global 8 | 2 groups"
                        + " | shape=[2, 2, 1, 4, 4]",
                "-n 6 --replica-groups 4,1 --lnc 2 --m 8 --k 9 --n-global 8 | 1 group, 4 of 6 ranks in"
                        + " none, tp_degree 2 | shape=[2, 2, 1, 4, 4]",
                "-n 7 --replica-groups 5,1/0,3,4,2 --lnc 2 --m 8 --k 9 --n-global 8 | 2 groups, 1 of"
                        + " 7 ranks in none, tp_degree 2/4, lnc 2, 1/2 channels, path SBUF"
                        + " | shape=[4, 2, 2, 2, 2]"
            })
    void aRunShowsPathAndShapeAndPassesOnEveryRank(String arguments, String head, String shape) {
        Invocation run = fgcc(arguments);
        assertEquals(0, run.code(), run.err() + run.out());
        assertTrue(run.out().contains(head), run.out());
        assertTrue(run.out().contains(shape), run.out());
        long ranks = Long.parseLong(arguments.split(" ")[1]);
        Matcher idle = Pattern.compile("(\\d+) of \\d+ ranks in none").matcher(run.out());
        ranks -= idle.find() ? Long.parseLong(idle.group(1)) : 0;
        assertEquals(
                ranks,
                run.out()
                        .lines()
                        .filter(line -> line.endsWith("bitwise the unfused product PASS"))
                        .count(),
                run.out());
        run.assertPrints(Invocation.VIEWS);
    }

    /** The arguments of the source's call, by its names. */
    @Test
    void theSourcesNamesAreOptions() {
        Invocation run =
                fgcc("--tp-degree 2 --num-groups 3 --force-hbm-cc --m 6 --k 9 --n-global 8");
        assertEquals(0, run.code(), run.err() + run.out());
        run.assertPrints("6 ranks (threads)", "3 groups, tp_degree 2,", "path HBM (forced)");
        Invocation lists = fgcc("--tp-degree 2 --replica-groups 0,2/1,3 --m 6 --k 9 --n-global 8");
        assertEquals(0, lists.code(), lists.err() + lists.out());
        lists.assertPrints("4 ranks (threads)", "2 groups, tp_degree 2,");
    }

    /** Large enough that a sample of rows and Freivalds judge, which takes half a minute here. */
    @Tag("long")
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
        assertTrue(json.contains("\"schema\" : \"weft.fgcc/2\""), json);
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
                "-n 3 --replica-groups 0,1/2 | tp_degree 1: expected an even number",
                "--tp-degree 3 | tp_degree 3: expected an even number",
                "--tp-degree 0 | --tp-degree 0: expected 1 to 4096",
                "--tp-degree 4096 --num-groups 2 | --n-ranks 8192: expected 1 to 4096",
                "-n 4 --tp-degree 2 | --tp-degree 2: a group has 4 ranks, expected the same number",
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
            FgccCommand fgcc = new FgccCommand();
            ProductRun run = Products.run(fgcc, 2, 2, 5, 6, arena);
            Products products = Products.of(run, arena);
            SourceReport right = products.report(run, true);
            assertTrue(right.passed(), fgcc.line(right));
            float value = products.c().get(3, 2);
            products.c().set(3, 2, Math.nextUp(value));
            SourceReport near = products.report(run, true);
            assertTrue(near.judged().withinBound() && near.judged().seedRulePassed());
            assertFalse(near.passed());
            assertTrue(fgcc.line(near).contains("DIFFERS from the unfused"), fgcc.line(near));
            products.c().set(3, 2, value + 1);
            SourceReport far = products.report(run, true);
            assertFalse(far.judged().withinBound() || far.judged().seedRulePassed());
            assertFalse(far.passed());
        }
    }

    /** Each group by itself, and ranks in none not at all. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "-n 8 --replica-groups 0,2,4,6/1,3,5,7 | ranks 0,2,4,6 and 1 more like it: ",
                "-n 8 --groups 2 | ranks 0,1,2,3 and 1 more like it: ",
                "-n 7 --replica-groups 5,1/0,2,3,6 | ranks 0,2,3,6: ",
                "-n 7 --replica-groups 5,1/0,2,3,6 | ranks 5,1: "
            })
    void groupsAreSimulated(String groups, String expected) {
        Invocation run = fgcc("-r sim -v trn2 --lnc 2 " + groups);
        assertEquals(0, run.code(), run.err());
        run.assertPrints(Invocation.VIEWS);
        run.assertPrints("Every group is priced with links of its own", expected, "(predicted)");
        assertFalse(run.out().contains("rank 4 ") && groups.contains("5,1"), run.out());
    }

    /** On a switch a group that is one of two takes as long as one that is alone. */
    @Test
    void groupsOnLinksOfTheirOwnTakeAsLongAsOneAlone() {
        String alone = pipelined("-r sim -v h200-nvlink8 -n 4");
        assertEquals(
                alone, pipelined("-r sim -v h200-nvlink8 -n 8 --replica-groups 0,2,4,6/1,3,5,7"));
        assertEquals(alone, pipelined("-r sim -v h200-nvlink8 -n 8 --replica-groups 3,5,6,0"));
    }

    private static String pipelined(String arguments) {
        Invocation run = fgcc(arguments);
        assertEquals(0, run.code(), run.err());
        return run.out().lines().filter(line -> line.contains("Pipelined:")).findFirst().orElse("");
    }

    @ParameterizedTest
    @CsvSource({
        "-n 4 --lnc 2,SBUF,2 channels",
        "-n 4 --lnc 2 --force-hbm,HBM (forced),2 channels",
        "-n 4 --lnc 1,SBUF,1 channel",
        "-n 64 --lnc 2,SBUF,4 channels"
    })
    void aSimulatedCallIsPredicted(String options, String path, String channels) {
        Invocation run = fgcc("-r sim -v trn2 --m 256 " + options);
        assertEquals(0, run.code(), run.err());
        run.assertPrints(Invocation.VIEWS);
        run.assertPrints("path " + path, channels, "(predicted)");
    }
}
