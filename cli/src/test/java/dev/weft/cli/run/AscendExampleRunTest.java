package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import dev.weft.report.RecordReader;
import dev.weft.report.RunRecord;
import dev.weft.report.Views;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The commands, options, views and files of Ascend's example, small. */
class AscendExampleRunTest extends ShortRuns {

    /** Each by itself means the algorithm and the chunks that it belongs to. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "--chunk-rule ascend",
                "--base-m 8",
                "--base-n 8",
                "--comm-blocks 2",
                "--compute-blocks 2"
            })
    void theExamplesOptionsMeanItsAlgorithm(String option) {
        Invocation run = run("-n 3 --gm 96 --gk 64 --gn 16 " + option);
        run.assertPrints("AllGather GEMM (cpu, mesh-push, ", "Verification PASSED.");
        assertFalse(run.out().contains("had no effect"), run.out());
    }

    /** The example's own commands as they stand, with fewer rounds. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "-r npu -v Ascend910B1 -n 2",
                "-r npu -v Ascend910B1 -n 2 --gm 2048 --gk 2048 --gn 1024 --base-m 128 --base-n 256"
                        + " --compute-blocks 32 --comm-blocks 24"
            })
    void commandsForAnNpuRunOnWhatIsHereBesideItsPrediction(String arguments) throws IOException {
        assertRunsBesideItsPrediction(arguments);
    }

    @Test
    @Tag("long")
    void theCommandWithAShapeOfItsOwnDoesToo() throws IOException {
        assertRunsBesideItsPrediction("-r npu -v Ascend910B1 -n 4 --gm 4096 --gk 2048 --gn 1536");
    }

    private void assertRunsBesideItsPrediction(String arguments) throws IOException {
        Path json = folder.resolve("r.json");
        String rest = " --data seed19 --warmup 0 --iterations 1 --data-dir ";
        Invocation run =
                Invocation.ofWords("run " + arguments + rest + folder + "/out --json " + json);
        assertEquals(0, run.code(), run.err() + run.out());
        run.assertPrints("NPU that Weft can use", "Verification PASSED.");
        assertEquals(
                5,
                run.out()
                        .lines()
                        .filter(line -> line.matches(".* \\[Ascend910B1: \\S+ ms predicted].*"))
                        .count(),
                "each view beside its prediction: " + run.out());
        String record = Files.readString(json);
        assertTrue(record.contains("\"machine\" : \"Ascend910B1\""), "in the record too");
        assertTrue(record.contains("\"seedRulePassed\" : true"), "compared with golden.bin");
        assertTrue(record.contains("\"meanUs\""), "the mean beside the median");
    }

    @Test
    void anyChipOfTheFamilyRuns() {
        Invocation run = run("-r npu -v 910_9391 -n 2 --gm 256 --gk 256 --gn 64");
        assertEquals(0, run.code(), run.err());
        run.assertPrints(
                "[INFO] Ascend910_9391 has no model of its own: times are predicted for Ascend910C",
                "[Ascend910C: ");
        Invocation known = run("-r npu -v 910b1 -n 2 --gm 256 --gk 256 --gn 64");
        assertEquals(0, known.code(), known.err());
        assertFalse(known.out().contains("model of its own"), known.out());
    }

    /** Sequential is the call's own transfers, then its product; Weft's stands beside it. */
    @Test
    void theExamplesViewsAreItsOwn() throws IOException {
        Path json = folder.resolve("r.json");
        Invocation run = run("-r npu -n 2 --gm 256 --gk 256 --gn 64 --json " + json);
        assertEquals(0, run.code(), run.err());
        run.assertPrints(" ms (median ", "  Baseline:     ", "x over the baseline");
        RunRecord record = RecordReader.read(json).run();
        Views views = record.views();
        int rounds = views.pipelined().us().size();
        assertEquals(rounds, views.baseline().us().size());
        for (int round = 0; round < rounds; round++) {
            double parts =
                    views.sequentialComm().us().get(round)
                            + views.sequentialCompute().us().get(round);
            // Each is of the slowest rank, which may be another one.
            assertTrue(views.sequential().us().get(round) <= parts + 1e-6, "round " + round);
        }
        assertEquals(views.sequential().mean() / views.pipelined().mean(), views.speedup(), 1e-9);
        Invocation plain = run("-n 2 --gm 256 --gk 256 --gn 64 --algorithm mesh-push");
        assertFalse(plain.out().contains("Baseline:"), plain.out());
        plain.assertPrints(" ms (mean ");
    }

    @Test
    void genDataWritesEveryFileAndLeavesNoPartsBehind() throws IOException {
        String data = folder.resolve("d").toString();
        Invocation made =
                Invocation.of(
                        "gen-data",
                        "-n",
                        "2",
                        "--gm",
                        "20",
                        "--gk",
                        "10",
                        "--gn",
                        "6",
                        "--data",
                        "seed19",
                        "--data-dir",
                        data);
        assertEquals(0, made.code(), made.err());
        try (Stream<Path> files = Files.list(Path.of(data))) {
            assertEquals(
                    List.of(
                            ".weft.lock",
                            "data.txt",
                            "golden.bin",
                            "pe_0_a.bin",
                            "pe_0_b.bin",
                            "pe_1_a.bin",
                            "pe_1_b.bin"),
                    files.map(file -> file.getFileName().toString()).sorted().toList());
        }
        // All of B on every rank, as in the example.
        for (int rank = 0; rank < 2; rank++) {
            assertEquals(10 * 6 * 2, Files.size(Path.of(data, "pe_" + rank + "_b.bin")));
        }
    }
}
