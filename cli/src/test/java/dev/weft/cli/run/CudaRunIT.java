package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cli.Invocation;
import dev.weft.cli.Main;
import dev.weft.cli.console.ExitCode;
import dev.weft.cuda.Gpu;
import dev.weft.ffi.CublasLt;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whole runs on a GPU, small. */
@Tag("gpu")
class CudaRunIT {

    private static final long LIMIT_SECONDS = 300;

    @TempDir Path folder;

    @BeforeEach
    void needsAGpu() {
        assumeTrue(Gpu.unavailable().isEmpty(), () -> "no GPU: " + Gpu.unavailable().orElse(""));
    }

    private List<String> command(String arguments) {
        return Invocation.shortRun("-r cuda " + arguments, folder.resolve("out"));
    }

    private Invocation run(String arguments) {
        return Invocation.of(command(arguments).toArray(String[]::new));
    }

    private static void assertPassed(Invocation run, String... fields) {
        assertEquals(0, run.code(), run.err() + run.out());
        List<String> expected = new ArrayList<>(List.of(fields));
        expected.addAll(
                List.of(
                        "\"schema\" : \"weft.run/1\"",
                        "\"simulated\" : false",
                        "\"device\" : \"cuda: ",
                        "\"passed\" : true",
                        "\"withinBound\" : true"));
        if (run.out().contains("\"op\" : \"allgather-matmul\"")) {
            expected.add("\"gatheredExact\" : true");
        }
        if (!run.out().contains("\"m\" : 0,")) {
            expected.add("\"kind\" : \"compute\"");
        }
        for (String field : expected) {
            assertTrue(run.out().contains(field), field + " in " + run.out());
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-n 4 --shards 400,0,599,1 --gk 264 --gn 136 --algorithm ring --dtype bf16",
                "-n 4 --gm 512 --gk 256 --gn 256 --algorithm bidirectional-ring --out-dtype fp16",
                "-n 4 --gm 640 --gk 128 --gn 128 --algorithm mesh-push --comm-blocks 3",
                "-n 3 --gm 700 --gk 77 --gn 33 --algorithm mesh-pull --transpose-b --keep-gathered",
                "-n 2 --gm 512 --gk 256 --gn 256 --algorithm direct --keep-gathered --dtype bf16",
                "-n 2 --gm 512 --gk 256 --gn 256 --algorithm sequential --compute-blocks 16",
                "-n 8 --gm 1024 --gk 64 --gn 64 --rhs column-sharded --splits-per-rank 3",
                "-n 4 --groups 2 --shards 300,20 --gk 128 --gn 96 --rhs column-sharded --dtype bf16"
                        + " --out-dtype bf16 --algorithm mesh-pull",
                "-n 6 --replica-groups 5,1/2,4,0 --gm 310 --gk 128 --gn 96 --algorithm mesh-pull",
                "-n 5 --replica-groups 1,3/4 --gm 300 --gk 64 --gn 40 --rhs column-sharded",
                "-n 2 --gm 600 --gk 512 --gn 100 --base-m 128 --base-n 32 --algorithm mesh-pull",
                "-n 4 --gm 512 --gk 512 --gn 128 --chunk-rule ascend --base-m 64 --base-n 32"
                        + " --comm-blocks 2",
                "-n 2 --gm 512 --gk 264 --gn 128 --chunk-rule ascend --data seed19",
                "-n 2 --gm 512 --gk 256 --gn 256 --data seed19 --chunk-rows 100",
                "-n 3 --gm 700 --gk 128 --gn 130 --epilogue bias,gelu --dtype bf16",
                "-n 4 --groups 2 --shards 300,20 --gk 128 --gn 96 --rhs column-sharded"
                        + " --epilogue silu,residual --out-dtype fp16",
                "-n 3 --op matmul-reduce-scatter --gm 700 --gk 192 --gn 130 --dtype bf16"
                        + " --out-dtype bf16 --epilogue bias,gelu",
                "-n 2 --op matmul-allreduce --shards 300,20 --k-parts 16,112 --gn 96"
                        + " --order by-rank --epilogue silu,residual",
                "-n 2 --gm 300 --gk 128 --gn 100 --rhs column-sharded --epilogue bias,swiglu",
                "-n 2 --op matmul-allreduce --gm 300 --gk 128 --gn 100 --epilogue swiglu,residual",
                "-n 3 --op matmul-allreduce --gm 300 --gk 192 --gn 600 --epilogue residual,rmsnorm",
                "-n 2 --op matmul-reduce-scatter --gm 300 --gk 128 --gn 100 --dtype bf16 --out-dtype bf16"
                        + " --epilogue bias,layernorm",
                "-n 4 --op matmul-allreduce --gm 500 --gk 64 --gn 72 --transpose-b",
                "-n 1 --gm 10 --gk 20 --gn 8",
                "-n 3 --gm 0 --gk 20 --gn 8"
            })
    void ranksOnDevicesPass(String arguments) {
        assertPassed(
                run(arguments + " --json -"),
                "\"engine\" : \"gated\"",
                "\"peers\" : \"device\"",
                "\"promise\" : \"bitwise\"",
                "\"bitwiseEqualToUnfused\" : true");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-n 2 --gm 512 --gk 256 --gn 256",
                "-n 4 --shards 400,0,599,1 --gk 264 --gn 136 --dtype bf16 --out-dtype bf16",
                "-n 8 --gm 2048 --gk 512 --gn 384 --transpose-b --chunk-rows 128 --comm-blocks 2",
                "-n 4 --gm 512 --gk 256 --gn 100 --rhs column-sharded --algorithm mesh-pull",
                "-n 2 --gm 512 --gk 256 --gn 256 --algorithm sequential --keep-gathered",
                "-n 4 --op matmul-reduce-scatter --gm 1000 --gk 512 --gn 264 --dtype bf16"
            })
    void peersInHostMemoryPass(String arguments) throws IOException {
        assertPassed(
                run(arguments + " --peers host --json -"),
                "\"engine\" : \"gated\"",
                "\"peers\" : \"host\"",
                "\"bitwiseEqualToUnfused\" : true");
        assertTrue(Files.exists(folder.resolve("out/output_rank0.bin")));
        assertFalse(Files.exists(folder.resolve("out/output_rank1.bin")), "only rank 0 runs");
        Invocation verify =
                Invocation.of("verify", "--loose", "--data-dir", folder.resolve("out").toString());
        assertEquals(0, verify.code(), verify.err() + verify.out());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "--op matmul-reduce-scatter --epilogue bias,relu,residual --out-dtype bf16",
                "--op matmul-allreduce --order by-rank --epilogue gelu-tanh,residual",
                "--op matmul-reduce-scatter --epilogue bias,swiglu,residual"
            })
    void epiloguesOfSumsWithPeersInHostMemoryPass(String arguments) {
        assertPassed(
                run(
                        "-n 4 --gm 1000 --gk 512 --gn 264 --dtype bf16 --peers host --json - "
                                + arguments),
                "\"peers\" : \"host\"",
                "\"bitwiseEqualToUnfused\" : true");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "-n 2 --gm 512 --gk 256 --gn 256 --peers host",
                "-n 3 --gm 700 --gk 200 --gn 72 --dtype bf16 --transpose-b",
                "-n 4 --shards 400,0,599,1 --gk 264 --gn 136 --algorithm ring --out-dtype fp16"
            })
    void cublasPromisesTheFloat64BoundAndTheRecordSaysSo(String arguments) {
        assumeTrue(
                CublasLt.unavailable().isEmpty(),
                () -> "no cublasLt: " + CublasLt.unavailable().orElse(""));
        assertPassed(
                run(arguments + " --engine cublas --json -"),
                "\"engine\" : \"cublas\"",
                "\"promise\" : \"float64-bound\"");
    }

    @Test
    void theSummaryNamesTheGpu() {
        Invocation run = run("-n 2 --gm 512 --gk 256 --gn 256 --peers host");
        assertEquals(0, run.code(), run.err());
        assertTrue(run.out().contains("Rank 0 of 2 on the GPU"), run.out());
        assertTrue(run.out().contains("[SUCCESS] AllGather GEMM (cuda: "), run.out());
        assertTrue(run.out().contains("thread blocks + 1 copy streams per rank"), run.out());
        assertTrue(run.out().contains("product bitwise equal to the unfused one"), run.out());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "--peers host --algorithm ring",
                "--compute-blocks 1024",
                "--base-m 128 --base-n 8"
            })
    void whatTheGpuDoesNotHoldIsRefusedBeforeAnythingIsWritten(String arguments) {
        Invocation run = run("-n 2 --gm 512 --gk 256 --gn 256 " + arguments);
        assertEquals(ExitCode.USAGE, run.code(), run.err());
        assertEquals(1, run.err().lines().count(), run.err());
        assertTrue(run.err().contains("expected"), run.err());
        assertFalse(Files.exists(folder.resolve("out")), "nothing half-written");
    }

    @Test
    void theDoctorTellsOfTheGpu() {
        String told = Invocation.of("doctor").out();
        assertTrue(told.contains("GPU 0:"), told);
        assertTrue(told.contains("copy engines"), told);
    }

    /** The command in a JVM of its own, since its ranks are started as it was. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "-n 2 --gm 512 --gk 256 --gn 256",
                "-n 4 --shards 400,0,599,1 --gk 264 --gn 136 --algorithm ring --dtype bf16",
                "-n 3 --gm 700 --gk 200 --gn 72 --algorithm mesh-push",
                "-n 2 --gm 512 --gk 256 --gn 256 --algorithm mesh-pull --keep-gathered"
            })
    void ranksInProcessesPass(String arguments) throws Exception {
        Path json = folder.resolve("r.json");
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        // Where ready and cached kernels are.
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(argument -> argument.startsWith("-Dweft."))
                .forEach(command::add);
        command.addAll(
                List.of(
                        "--enable-native-access=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path"),
                        Main.class.getName()));
        command.addAll(command(arguments + " --launcher processes --json " + json));
        Path errors = folder.resolve("stderr");
        Process process =
                new ProcessBuilder(command)
                        .redirectOutput(folder.resolve("stdout").toFile())
                        .redirectError(errors.toFile())
                        .start();
        boolean ended = process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS);
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        assertTrue(ended, "the command hangs");
        assertPassed(
                new Invocation(
                        process.exitValue(),
                        Files.exists(json) ? Files.readString(json) : "",
                        Files.readString(errors)),
                "\"launcher\" : \"processes\"",
                "\"peers\" : \"device\"",
                "\"bitwiseEqualToUnfused\" : true");
    }
}
