package dev.weft.compat.command;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code weft helion}: what it prints, writes and refuses. */
class HelionCommandTest {

    @TempDir Path folder;

    private static Invocation helion(String arguments) {
        return Invocation.ofWords("helion " + arguments);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-n 8 --m 64 --n 104 --k 256",
                "-n 4 --m 64 --n 104 --k 256 --splits-per-rank 4",
                "-n 1 --m 5 --n 7 --k 9 --dtype fp32",
                "-n 3 --m 15 --n 7 --k 10 --splits-per-rank 5 --dtype fp16 --iterations 2"
            })
    void everyRankComparesAndPasses(String arguments) {
        Invocation run = helion(arguments);
        assertEquals(0, run.code(), run.err() + run.out());
        List<String> lines = run.out().lines().filter(line -> line.startsWith("[rank ")).toList();
        assertEquals(Integer.parseInt(arguments.split(" ")[1]), lines.size(), run.out());
        for (String line : lines) {
            assertTrue(line.contains("a_out exact, c=["), line);
            assertTrue(line.contains("within 1e-1 of the fused operator's result"), line);
            assertTrue(line.endsWith("bitwise the unfused product PASS"), line);
        }
        run.assertPrints(Invocation.VIEWS);
    }

    @Test
    void tilesAreThoseOfTheOptions() throws IOException {
        Path file = folder.resolve("tiles.json");
        Invocation run =
                helion("-n 2 --m 8 --n 6 --k 16 --block-sizes 3,2,8 --num-stages 2 --json " + file);
        assertEquals(0, run.code(), run.err() + run.out());
        run.assertPrints(", block_sizes [3, 2, 8], num_warps 8, num_stages 2");
        String json = Files.readString(file);
        for (String part :
                List.of(
                        "\"blockSizes\" : [ 3, 2, 8 ]",
                        "\"numWarps\" : 8",
                        "\"numStages\" : 2",
                        "\"passed\" : true")) {
            assertTrue(json.contains(part), part + " in " + json);
        }
    }

    @Test
    void theDefaultsAreTheExamples() {
        String help = helion("--help").out().replaceAll("\\s+", " ");
        for (String value :
                List.of("default: 4096", "default: 6656", "default: 16384", "bf16 in ring, fgcc")) {
            assertTrue(help.contains(value), value + " in " + help);
        }
        assertTrue(help.contains("default: 8, or as many"), help);
        assertTrue(help.contains("normal data (default: 42)"), help);
    }

    @Test
    void theOutcomeAsJson() throws IOException {
        Path file = folder.resolve("h.json");
        assertEquals(0, helion("-n 2 --m 8 --n 6 --k 16 --quiet --json " + file).code());
        String json = Files.readString(file);
        for (String part :
                List.of(
                        "\"schema\" : \"weft.helion/1\"",
                        "\"splitsPerRank\" : 1",
                        "\"gatheredExact\" : true",
                        "\"bitwiseEqualToUnfused\" : true",
                        "\"shape\" : [ 8, 6 ]",
                        "\"pipelined\" : {",
                        "\"passed\" : true")) {
            assertTrue(json.contains(part), part + " in " + json);
        }
    }

    @Test
    void aWrongElementOrAWrongGatherFails() {
        try (Arena arena = Arena.ofConfined()) {
            HelionCommand helion = new HelionCommand();
            ProductRun run = Products.run(helion, 2, 2, 5, 6, arena);
            Products products = Products.of(run, arena);
            assertTrue(products.report(run, true).passed());
            SourceReport spoiled = products.report(run, false);
            assertFalse(spoiled.passed());
            assertTrue(helion.line(spoiled).contains("a_out WRONG"), helion.line(spoiled));
            float value = products.c().get(3, 2);
            for (float wrong : new float[] {Math.nextUp(value), 900, Float.NaN}) {
                products.c().set(3, 2, wrong);
                SourceReport report = products.report(run, true);
                assertFalse(report.passed(), helion.line(report));
                boolean near = wrong == Math.nextUp(value);
                assertEquals(near, report.judged().seedRulePassed(), "by 1e-1: " + wrong);
            }
        }
    }

    @Test
    void aSimulatedCallIsPredicted() {
        Invocation run = helion("-r sim -v h200-nvlink8");
        assertEquals(0, run.code(), run.err());
        run.assertPrints(Invocation.VIEWS);
        run.assertPrints("M 4096, N 6656, K 16384, bf16, 1 split per rank", "(predicted)");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "-n 0 | --n-ranks 0: expected 1 to 4096",
                "-n 3 --m 16 | --m 16 on 3 ranks: expected a multiple",
                "--m 0 | --m 0: expected 1 to",
                "--splits-per-rank 0 | --splits-per-rank 0: expected 1 to",
                "-n 2 --m 6 --n 4 --k 5 --splits-per-rank 4 | 4",
                "--block-sizes 128,256 | --block-sizes with 2 numbers: expected 3",
                "-n 2 --m 8 --n 6 --k 16 --block-sizes 0,2,3 | tiles of 0 x 2 in steps of 3",
                "-r sim -v h200-nvlink8 --num-warps 4 | --num-warps is for real ranks",
                "--dtype int8 | unknown dtype 'int8'",
                "--launcher joined --deadline 1m | --deadline 1m with --launcher joined"
            })
    void wrongUsageIsOneLine(String arguments, String expected) {
        helion(arguments).assertRefused(expected);
    }
}
