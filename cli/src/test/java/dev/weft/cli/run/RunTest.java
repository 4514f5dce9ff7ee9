package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.console.ExitCode;
import dev.weft.ffi.OpenBlas;
import dev.weft.report.CallSpans;
import dev.weft.report.RecordReader;
import dev.weft.report.RunRecord;
import dev.weft.report.RunView;
import dev.weft.report.ShownRun;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import dev.weft.tensor.data.NormalData;
import dev.weft.trace.Timeline;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whole runs with ranks as threads, small. */
class RunTest extends ShortRuns {

    /** Every kind of scales, both types of B, uneven shards, files of the user's own. */
    @Test
    void quantizedInputsAreVerified() throws IOException {
        Path json = folder.resolve("r.json");
        List<String> runs =
                List.of(
                        "-n 3 --shards 40,0,33 --gk 300 --gn 50 --scales block --algorithm ring",
                        "-n 2 --gm 40 --gk 70 --gn 30 --b-dtype e5m2 --transpose-b --out-dtype bf16"
                                + " --keep-gathered --epilogue bias,gelu",
                        "-n 2 --gm 40 --gk 70 --gn 30 --scales tensor --rhs replicated");
        for (String arguments : runs) {
            Invocation run = run("--dtype fp8 " + arguments + " --json " + json);
            assertEquals(0, run.code(), run.err());
            RunRecord.Problem problem = RecordReader.read(json).run().problem();
            assertEquals("e4m3", problem.aDtype());
            assertEquals(arguments.contains("e5m2") ? "e5m2" : "e4m3", problem.bDtype());
            String given = arguments.replaceAll(".*--scales (\\w+).*", "$1");
            assertEquals(given.equals(arguments) ? "row" : given, problem.scales());
        }
        Invocation verify = Invocation.of("verify", "--data-dir", folder.resolve("out").toString());
        assertEquals(ExitCode.USAGE, verify.code());
        assertTrue(verify.err().contains("--dtype fp8, which has verified them"), verify.err());
        Matrix a = Matrix.allocate(Arena.ofAuto(), DType.E4M3, 20, 30);
        new NormalData(3, 0).fill(a);
        Path file = folder.resolve("a.safetensors");
        MatrixFiles.write(file + ":a", a);
        String files = "-n 2 --a %s:a --b %s:a --transpose-b".formatted(file, file);
        Invocation refused = run(files);
        assertEquals(ExitCode.USAGE, refused.code());
        assertTrue(refused.err().contains("A is e4m3 and B e4m3"), refused.err());
        Invocation quantized = run(files + " --dtype fp8");
        assertEquals(0, quantized.code(), quantized.err());
    }

    /** Rows of several groups, columns of one rank each, every step, and all types of results. */
    @Test
    void epiloguesAreVerifiedAndToldOf() throws IOException {
        Path json = folder.resolve("r.json");
        List<String> runs =
                List.of(
                        "-n 3 --gm 90 --gk 70 --gn 50 --epilogue bias,gelu",
                        "-n 4 --groups 2 --gm 40 --gk 30 --gn 50 --rhs replicated --out-dtype"
                                + " bf16 --epilogue bias,silu,residual --algorithm ring",
                        "-n 2 --shards 5,0 --gk 30 --gn 7 --out-dtype fp16 --data seed19"
                                + " --epilogue residual,gelu-tanh,relu --keep-gathered",
                        "-n 5 --replica-groups 1,3/4 --gm 30 --gk 20 --gn 28 --transpose-b --rhs"
                                + " column-sharded --epilogue bias,swiglu,residual",
                        "-n 3 --op matmul-allreduce --gm 30 --gk 20 --gn 28 --dtype bf16"
                                + " --epilogue swiglu,bias",
                        "-n 3 --op matmul-allreduce --gm 30 --gk 20 --gn 28 --dtype bf16"
                                + " --epilogue bias,residual,rmsnorm",
                        "-n 2 --op matmul-reduce-scatter --gm 30 --gk 20 --gn 600 --dtype fp16"
                                + " --order by-rank --epilogue residual,layernorm",
                        "-n 3 --gm 30 --gk 20 --gn 600 --rhs replicated --out-dtype bf16"
                                + " --epilogue swiglu,layernorm --compute-blocks 2");
        for (String arguments : runs) {
            Invocation run = run(arguments + " --json " + json);
            assertEquals(0, run.code(), run.err());
            String steps = arguments.replaceAll(".*--epilogue ([a-z,-]+).*", "$1");
            run.assertPrints(
                    "epilogue " + steps, "[INFO] Functional run completed. Verification PASSED.");
            RunRecord record = RecordReader.read(json).run();
            assertEquals(steps, record.problem().epilogue());
            assertTrue(record.verification().bitwiseEqualToUnfused());
        }
        Invocation verify = Invocation.of("verify", "--data-dir", folder.resolve("out").toString());
        assertEquals(ExitCode.USAGE, verify.code());
        assertTrue(verify.err().contains("a run with --epilogue"), verify.err());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "--epilogue bias,gelu,bias|epilogue 'bias,gelu,bias' has two steps 'bias'",
                "--epilogue swiglu --gn 50 -n 2|and rank 0 has 25: expected an even number",
                "--epilogue residual,swiglu|expected it after swiglu",
                "--epilogue swiglu --dtype fp8|whose B has scales: expected fp16, bf16 or fp32",
                "--epilogue residual,swiglu -r sim -v Ascend910B1|expected it after swiglu",
                "--epilogue rmsnorm,relu|has a step after 'rmsnorm': expected the norm to be the last",
                "--epilogue rmsnorm|no rank has whole rows of C for rmsnorm; expected --rhs rep",
                "--epilogue relu -r cuda --engine cublas|which promises no bits",
                "--epilogue relu --engine openblas|openblas, which promises no bits"
            })
    void epiloguesThatCannotBeAreRefused(String argumentsAndMessage) {
        String[] parts = argumentsAndMessage.split("\\|");
        Invocation run = run(parts[0]);
        assertEquals(ExitCode.USAGE, run.code(), run.err());
        assertTrue(run.err().contains(parts[1]), run.err());
        assertEquals(1, run.err().lines().count(), run.err());
    }

    @Test
    void aRunPrintsTheSummaryAndWritesItsFiles() throws IOException {
        Path json = folder.resolve("r.json");
        Invocation run = run("-n 3 --gm 90 --gk 70 --gn 50 --json " + json);
        assertEquals(0, run.code(), run.err());
        run.assertPrints(
                "[INFO] Running warmup...",
                "[INFO] Functional run completed. Verification PASSED.",
                "[SUCCESS] AllGather GEMM",
                "TFLOP/s");
        run.assertPrints(Invocation.VIEWS);
        for (int rank = 0; rank < 3; rank++) {
            Path output = folder.resolve("out/output_rank" + rank + ".bin");
            int columns = rank == 2 ? 16 : 17;
            assertEquals(90 * columns * 4, Files.size(output));
            assertEquals(30 * 70 * 2, Files.size(folder.resolve("out/pe_" + rank + "_a.bin")));
            assertEquals(70 * columns * 2, Files.size(folder.resolve("out/pe_" + rank + "_b.bin")));
        }
        assertEquals(90 * 50 * 4, Files.size(folder.resolve("out/golden.bin")));
        String record = Files.readString(json);
        for (String field :
                List.of(
                        "\"schema\" : \"weft.run/1\"",
                        "\"passed\" : true",
                        "\"promise\" : \"bitwise\"",
                        "\"gatheredExact\" : true",
                        "\"bitwiseEqualToUnfused\" : true",
                        "\"requestedAlgorithm\" : \"auto\"",
                        "\"device\" : \"cpu\"",
                        "\"peers\" : null",
                        "\"overlapEfficiency\"",
                        "\"kind\" : \"compute\"")) {
            assertTrue(record.contains(field), field);
        }
        assertFalse(record.contains(folder.toString()), "no paths in a record");
        assertTrue(run("-n 3 --gm 90 --gk 70 --gn 50").out().contains("Reusing"), "same problem");
        assertTrue(run("-n 3 --gm 90 --gk 70 --gn 51").out().contains("Generated"), "another one");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-n 4 --shards 40,0,59,1 --gk 33 --gn 17 --algorithm ring --dtype bf16 --rhs"
                        + " replicated",
                "-n 4 --gm 64 --gk 33 --gn 17 --algorithm mesh-push --comm-blocks 6 --out-dtype"
                        + " fp16",
                "-n 2 --gm 64 --gk 33 --gn 17 --transpose-b --a-dtype fp32",
                "-n 4 --groups 2 --gm 31 --gk 20 --gn 9 --keep-gathered --algorithm direct --rhs"
                        + " replicated",
                "-n 6 --groups 2 --gm 31 --gk 20 --gn 9 --rhs column-sharded --algorithm mesh-pull",
                "-n 4 --replica-groups 2,0/1,3 --gm 31 --gk 20 --gn 9 --keep-gathered --rhs"
                        + " replicated",
                "-n 6 --replica-groups 5,1,3/2,4,0 --gm 31 --gk 20 --gn 9 --rhs column-sharded"
                        + " --algorithm ring",
                "-n 5 --replica-groups 0,1/2,3,4 --gm 31 --gk 20 --gn 9 --keep-gathered --npy",
                "-n 6 --replica-groups 5,1/2,4,0 --gm 31 --gk 20 --gn 9 --rhs column-sharded"
                        + " --algorithm mesh-push",
                "-n 6 --replica-groups 4/0,2,5 --gm 31 --gk 20 --gn 9 --algorithm ring"
                        + " --transpose-b --data seed19 -v Ascend910B1",
                "-n 2 --gm 300 --gk 900 --gn 8 --base-m 32 --base-n 64 --algorithm"
                        + " bidirectional-ring",
                "-n 2 --gm 40 --gk 20 --gn 8 --splits-per-rank 3 --data seed19 --engine scalar",
                "-n 3 --gm 0 --gk 20 --gn 8",
                "-n 1 --gm 10 --gk 20 --gn 8 --out-dtype bf16",
                "-n 3 --gm 10 --gk 20 --gn 1",
                "-n 3 --gm 100 --gk 96 --gn 20 --chunk-rule ascend --base-m 8 --base-n 8"
                        + " --algorithm mesh-push --comm-blocks 4",
                "-n 2 --gm 64 --gk 32 --gn 16 --strict --base-m 16 --base-n 16"
            })
    void manyKindsOfProblemsPass(String arguments) {
        Invocation run = run(arguments);
        assertEquals(0, run.code(), run.err() + run.out());
        assertTrue(run.out().contains("Verification PASSED."), run.out());
    }

    /** Groups of different sizes, one with a stride, and two ranks in none. */
    @Test
    void ranksInNoGroupSitOut() throws IOException {
        Path json = folder.resolve("groups.json");
        Path report = folder.resolve("groups.html");
        String groups = "-n 7 --replica-groups 5,1/2,4,6 --gm 64 --gk 40 --gn 24";
        Invocation run = run(groups + " --json " + json + " --report " + report);
        assertEquals(0, run.code(), run.err() + run.out());
        assertTrue(
                run.out()
                        .contains(
                                "in shards of 32,32 or 22,21,21 rows, B [40, 24] fp16"
                                        + " column-sharded, C fp32, groups of ranks 5,1/2,4,6, 2 of 7"
                                        + " ranks in none"),
                run.out());
        assertFalse(run.out().contains("more rank"), run.out());
        for (int rank = 0; rank < 7; rank++) {
            boolean member = rank != 0 && rank != 3;
            Path output = folder.resolve("out/output_rank" + rank + ".bin");
            assertEquals(member, Files.exists(output), output.toString());
            int columns = 24 / (rank == 1 || rank == 5 ? 2 : 3);
            assertTrue(!member || Files.size(output) == 64 * columns * 4, output.toString());
        }
        RunRecord record = RecordReader.read(json).run();
        assertEquals("5,1/2,4,6", record.problem().replicaGroups());
        assertEquals(
                "1 0 32, 2 1 22, 4 1 21, 5 0 32, 6 1 21",
                record.ranks().stream()
                        .map(rank -> rank.rank() + " " + rank.group() + " " + rank.shardRows())
                        .collect(Collectors.joining(", ")));
        ShownRun shown = RunView.of(record, "groups.json");
        assertFalse(shown.analysis().shares().isEmpty(), "all ranks that take part are known");
        Set<Integer> first = Set.of(5, 1);
        CallSpans call = shown.call();
        for (CallSpans.RankSpans rank : call.ranks()) {
            for (Timeline.Track track : rank.tracks()) {
                for (Timeline.Span span : track.spans()) {
                    assertEquals(first.contains(rank.rank()), first.contains(span.source()));
                    assertEquals(first.contains(rank.rank()), first.contains(span.peer()));
                }
            }
        }
        assertTrue(Files.readString(report).contains("5,1/2,4,6"), "groups in the report");
        Invocation verified =
                Invocation.of("verify", "--data-dir", folder.resolve("out").toString());
        assertEquals(0, verified.code(), verified.err() + verified.out());
        assertTrue(run(groups).out().contains("Reusing"), "same problem");
    }

    /** The odd shape makes OpenBLAS take other kernels for a shard than for all rows. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "-n 2 --gm 37 --gk 1500 --gn 3 --dtype fp32 --algorithm direct",
                "-n 3 --gm 300 --gk 70 --gn 50 --dtype bf16 --out-dtype fp16 --algorithm ring",
                "-n 2 --gm 64 --gk 33 --gn 17 --rhs column-sharded --transpose-b --keep-gathered"
            })
    void openBlasPromisesTheFloat64BoundAndTheRecordSaysSo(String arguments) {
        assumeTrue(
                OpenBlas.unavailable().isEmpty(),
                () -> "no OpenBLAS: " + OpenBlas.unavailable().orElseThrow());
        Invocation run = run(arguments + " --engine openblas --json -");
        assertEquals(0, run.code(), run.err() + run.out());
        for (String field :
                List.of(
                        "\"engine\" : \"openblas\"",
                        "\"passed\" : true",
                        "\"promise\" : \"float64-bound\"",
                        "\"withinBound\" : true")) {
            assertTrue(run.out().contains(field), field + " in " + run.out());
        }
    }

    @Test
    void quietIsSilentAndJsonMayGoToStandardOutput() {
        assertEquals("", run("-n 2 --gm 8 --gk 8 --gn 8 --quiet").out());
        String record = run("-n 2 --gm 8 --gk 8 --gn 8 --json -").out();
        assertTrue(record.startsWith("{") && record.strip().endsWith("}"), record);
    }

    @Test
    void verifyFindsOneWrongElement() throws IOException {
        assertEquals(0, run("-n 2 --gm 64 --gk 32 --gn 16").code());
        String data = folder.resolve("out").toString();
        assertEquals(0, Invocation.of("verify", "--data-dir", data).code());
        try (RandomAccessFile file =
                new RandomAccessFile(folder.resolve("out/output_rank1.bin").toFile(), "rw")) {
            file.seek(400);
            file.writeInt(0x3F);
        }
        Invocation wrong = Invocation.of("verify", "--data-dir", data);
        assertEquals(ExitCode.FAILED, wrong.code());
        assertTrue(wrong.out().contains("DIFFERS"), wrong.out());
        assertTrue(wrong.out().contains("EXCEEDED"), wrong.out());
        assertFalse(wrong.out().contains("gathered A"), "nobody looked at it");
        assertTrue(wrong.err().startsWith("weft: verification failed: a product differs"));
        Invocation quiet = Invocation.of("verify", "--quiet", "--data-dir", data);
        assertEquals("", quiet.out());
        assertEquals(1, quiet.err().lines().count(), "a failure is told all the same");
        Files.delete(folder.resolve("out/output_rank0.bin"));
        Invocation missing = Invocation.of("verify", "--data-dir", data);
        assertEquals(ExitCode.USAGE, missing.code());
        assertTrue(missing.err().contains("output_rank0.bin"), missing.err());
    }

    @Test
    void verifyKnowsWhatTheRunWrote() throws IOException {
        String data = folder.resolve("out").toString();
        assertEquals(0, run("-n 2 --gm 24 --gk 32 --gn 16 --out-dtype bf16").code());
        assertEquals(0, Invocation.of("verify", "--data-dir", data).code());
        assertEquals(0, run("-n 3 --gm 24 --gk 32 --gn 16").code());
        assertEquals(0, run("-n 2 --gm 24 --gk 32 --gn 16").code());
        assertFalse(
                Files.exists(folder.resolve("out/output_rank2.bin")),
                "outputs of an earlier run are gone");
        Files.delete(folder.resolve("out/pe_1_a.bin"));
        assertTrue(run("-n 2 --gm 24 --gk 32 --gn 16").out().contains("Generated"));
    }

    @Test
    void optionsWithoutEffectAreNamed() {
        Invocation run = run("-n 2 --gm 24 --gk 32 --gn 16 --chunk-rows 4 --algorithm direct");
        assertTrue(run.out().contains("--chunk-rows had no effect"), run.out());
    }

    @Test
    void aMachineNamedBesideARealRunPredictsForIt() {
        Invocation run = run("-r cpu -v trn2 -n 2 --gm 64 --gk 64 --gn 64");
        assertEquals(0, run.code(), run.err());
        run.assertPrints("[trn2: ", "(mean ");
    }
}
