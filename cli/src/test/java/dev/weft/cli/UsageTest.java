package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.weft.cli.console.ExitCode;
import dev.weft.cuda.Gpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Wrong input: exit code 2, one line that names what was given, nothing written. */
class UsageTest {

    @TempDir Path folder;

    /** Whole lines: what the parser says by itself names positions and ends with a full stop. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "help rnu | unknown command 'rnu': try demo, run, plan, sweep, report, ring, fgcc,"
                        + " gather, helion or doctor; see 'weft --help'",
                "help swep | unknown command 'swep', did you mean sweep? (see 'weft --help')",
                "runn --gm 4 | unknown command 'runn', did you mean run? (see 'weft --help')",
                "-x | unknown option '-x'; see 'weft --help'",
                "run extra words | unknown argument 'extra': expected options only; see 'weft run"
                        + " --help'",
                "run --gmm 4 | unknown option '--gmm', did you mean --gm? (see 'weft run --help')",
                "completion bash zsh | unknown argument 'zsh'; see 'weft completion --help'",
                "demo extra | unknown argument 'extra': expected options only; see 'weft run --help'",
                "demo --dtype fp4 | --dtype: unknown dtype 'fp4': expected fp32, fp16 or bf16",
                "demo -n 3 | option '--n-ranks' (R) should be specified only once; demo sets -n,"
                        + " --gm, --gk, --gn, --link, --warmup and --iterations itself: expected"
                        + " other options, or ./weft run",
                "run -r sim -v trn2 --slow x | Invalid value for option '--slow': 'x': expected"
                        + " RANK=FACTOR; see 'weft run --help'",
            })
    void linesAreWholeSentences(String arguments, String line) {
        Invocation refused = Invocation.ofWords(arguments);
        refused.assertRefused(line);
        assertEquals("weft: " + line, refused.err().strip());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "-n 0 | --n-ranks 0: expected 1 to 4096",
                "-n x | 'x': expected a whole number",
                "--gm 2.5 | '--gm': '2.5': expected a whole number",
                "--gm 99999999999999999999 | expected a whole number",
                "--iterations 3000000000 | '3000000000': expected a smaller number",
                "--shards 1,2, | --shards 1,2,: expected a value after the last comma",
                "-n 5000 | --n-ranks 5000",
                "--gm -1 | --gm -1: expected 0 to 2199023254528",
                "--gm 9223372036854775807 | --gm 9223372036854775807: expected 0 to 2199023254528",
                "--gk 0 | --gk 0: expected 1 to 2199023254528",
                "--gk 2199023254529 | --gk 2199023254529: expected 1 to 2199023254528",
                "--gn 9999999999999999 | --gn 9999999999999999: expected 0 to 2199023254528",
                "--gm 2199023254528 --gk 2199023254528 | A [2199023254528, 2199023254528] fp16"
                        + " for 2 ranks is 19342813095819668290011136 bytes: expected at most"
                        + " 9223372036854775807",
                "--gk 2199023254528 --gn 2199023254528 --gm 2 | B [2199023254528, 2199023254528]",
                "--gm 2199023254528 --gn 2199023254528 --gk 1 | C [2199023254528, 2199023254528]",
                "-r sim -v trn2 --gm 2199023254528 --gk 2199023254528 | expected at most 922337",
                "-r sim -v trn2 --gm 2199023254528 --gk 64 --gn 64 --chunk-rows 1 |"
                        + " chunks: expected at most 1073741823 for 2 ranks",
                "--shards 1,2,3 | expected 2 numbers",
                "--shards 1,-2 | expected zero or more rows each, and at most 2199023254528"
                        + " together",
                "--shards 9223372036854775807,9223372036854775807 | and at most 2199023254528",
                "--shards 2199023254528,1 | at most 2199023254528 together",
                "--gm 10 --shards 1,2 | are 3 rows, --gm says 10",
                "--groups 3 | --groups 3: expected a number that divides the 2 ranks",
                "--dtype fp4 | --dtype: unknown dtype 'fp4'",
                "--b-dtype fp4 | --b-dtype: unknown dtype 'fp4'",
                "--b-dtype q4_k --gk 100 | K of 100 in parts of 100 with --b-dtype q4_k: expected",
                "--b-dtype q8_0 --engine openblas | engine 'openblas' does not multiply q8_0",
                "-r cuda --b-dtype q8_0 | --b-dtype q8_0 on the GPU: expected --run-mode cpu",
                "-r sim -v cpu-1gbe --b-dtype q4_0 | --b-dtype q4_0 in simulation: expected",
                "-v cpu-1gbe --b-dtype q4_0 | --b-dtype q4_0 in simulation: expected",
                "--dtype fp8 --a-dtype e4m3 | --a-dtype: unknown dtype 'e4m3'",
                "--dtype e4m3 | unknown dtype 'e4m3'",
                "--dtype fp8 --b-dtype fp16 | --b-dtype 'fp16': expected one of e4m3, e5m2",
                "--dtype fp8 --op matmul-allreduce | --dtype fp8 with --op matmul-allreduce",
                "--scales row | --scales row with --dtype fp16: expected --dtype fp8",
                "-r sim -v Ascend910B1 --dtype fp8 | A is e4m3: expected one of fp16, bf16",
                "--a-dtype int | unknown dtype 'int'",
                "--out-dtype f | unknown dtype 'f'",
                "--rhs sharded | --rhs 'sharded': expected one of replicated, column-sharded",
                "--data zeros | --data 'zeros': expected one of normal, seed19",
                "-r tpu | --run-mode 'tpu': expected one of auto, cpu, cuda, npu, sim",
                "-r npu -v NoSuch | --soc-version: unknown machine 'NoSuch': expected one of",
                "-r npu -v Ascend910B1 --dtype fp32 | A is fp32: expected one of fp16, bf16",
                "-r npu -v Ascend910B1 -n 17 | 17 ranks on Ascend910B1: expected at most 16",
                "-r cpu -v trn2 --algorithm direct | direct on trn2: its ranks cannot multiply",
                "--no-verify | --no-verify with --run-mode auto: real runs are verified",
                "--algorithm direct --comm-blocks 4 | --comm-blocks 4 with --algorithm direct",
                "--algorithm direct --base-m 8 | --base-m/--base-n with --algorithm direct",
                "--chunk-rule weft --base-n 8 | --chunk-rule weft with --base-m/--base-n",
                "-r sim | --run-mode sim needs -v: expected one of Ascend910B1",
                "-r sim -v NoSuch | --soc-version: unknown machine 'NoSuch': expected one of",
                "-r sim -v none.json | --soc-version: none.json",
                "-r sim -v trn2 --launcher threads | --launcher is for real ranks",
                "-r sim -v trn2 --hostfile x | --hostfile is for real ranks",
                "-r sim -v trn2 --mpi-args x | --mpi-args is for real ranks",
                "-r sim -v trn2 --peers host | --peers is for real ranks",
                "-r sim -v trn2 --engine scalar | --engine is for real ranks",
                "-n 3 --replica-groups 0,1/2 --shards 5,3 | --shards [5, 3] with --replica-groups"
                        + " 0,1/2: expected groups of equal size",
                "-n 3 --replica-groups 0,1/2 --shards 5 | expected 2 numbers",
                "-n 4 --replica-groups 0,1/1,2 | rank 1 is twice in replica groups 0,1/1,2",
                "-n 4 --replica-groups 0,1/4 | expected ranks 0 to 3, which the world has",
                "-r cuda --peers host -n 4 --replica-groups 0,2 | host with --replica-groups 0,2:"
                        + " expected one group of all ranks",
                "-r sim -v trn2 --a x.npy --b y.npy --no-verify | --a x.npy with --run-mode sim",
                "-r sim -v trn2 --slow 2=3 | rank 2 3.0 times as slow: expected one of 2 ranks",
                "-r sim -v trn2 --slow 1 | --slow",
                "-r sim -v trn2 --algorithm direct | direct on trn2: its ranks cannot multiply",
                "-r sim -v trn2 --chunk-rows 4 --splits-per-rank 2 | give one of them",
                "-r sim -v Ascend910B1 -n 17 | 17 ranks on Ascend910B1: expected at most 16",
                "-r sim -v Ascend910B1 --strict --gk 300 | K 300 is not divisible by base-n 256",
                "--slow 1=2 | --slow {1=2.0} slows simulated ranks: it needs --run-mode sim",
                "-r cuda --dtype fp32 | A is fp32 and B fp32: on the GPU expected fp16 for both",
                "-r cuda --b-dtype bf16 | A is fp16 and B bf16: on the GPU expected fp16 for both",
                "-r cuda --out-dtype bf16 | --out-dtype bf16 of inputs in fp16: on the GPU",
                "-r cuda --gn 1 | rank 1 has no column of the 1 of B",
                "-r cuda --gn 0 | has no column of the 0 of B",
                "-r cuda --engine vector | one of auto, gated, cublas with --run-mode cuda",
                "-r cuda --engine scalar | (auto, portable, native, amx, vector, scalar, openblas with cpu)",
                "--engine gated | openblas with --run-mode auto (auto, gated, cublas with cuda)",
                "--engine amx --dtype fp16 | engine 'amx'",
                "-r cuda --engine cublas --compute-blocks 8 | the library chooses its grids",
                "-r cuda --compute-blocks 0 | --compute-blocks 0: expected 1 to 1024",
                "-r cuda --peers bus | --peers 'bus': expected one of device, host",
                "--peers host | it needs --run-mode cuda, not auto",
                "-r cpu --peers device | it needs --run-mode cuda, not cpu",
                "-r cuda --peers host --launcher processes | expected --launcher threads",
                "-r cuda --peers host --groups 2 | host with --groups 2: expected one group",
                "--algorithm tree | unknown algorithm 'tree'",
                "--launcher ssh | --launcher 'ssh': expected one of threads, processes, mpi",
                "--launcher mpi --hostfile /nowhere | --hostfile /nowhere: no such file",
                "--launcher mpi --mpi-args \"x | --mpi-args '\"x': expected a second \"",
                "--hostfile x | --hostfile x is for mpirun: it needs --launcher mpi, not threads",
                "--engine gpu | --engine 'gpu': expected one of auto, portable, native, amx, vector",
                "--base-m 0 | --base-m 0: expected 1 to 2199023254528",
                "--base-n -4 | --base-n -4: expected 1 to 2199023254528",
                "--chunk-rows 9223372036854775807 | 9223372036854775807: expected 1 to 21990",
                "--compute-blocks 0 | --compute-blocks 0: expected 1 to 1024",
                "--comm-blocks -1 | --comm-blocks -1",
                "--splits-per-rank 0 | --splits-per-rank 0",
                "--chunk-rows 0 | --chunk-rows 0",
                "--chunk-rows 4 --splits-per-rank 2 | give one of them",
                "--warmup -1 | --warmup -1: expected 0 to",
                "--iterations 0 | --iterations 0: expected 1 to",
                "--deadline soon | 'soon' is not a duration",
                "--deadline 0s | expected more than zero",
                "--a missing.npy | --a missing.npy alone: expected --a and --b together",
                "--a missing.npy --b missing.npy | missing.npy",
                "--a a.safetensors --b b.npy | say which tensor",
                "--json /nowhere/r.json | --json /nowhere/r.json: expected a file in a folder",
                "--chunk-rule other | --chunk-rule 'other': expected one of weft, ascend",
                "--chunk-rule ascend --chunk-rows 4 | --chunk-rule ascend sets the chunk size",
                "--strict --base-n 6 | base-n 6 is not divisible by 4",
                "--strict --gm 100 | M 100 is not divisible by base-m 128",
                "--strict --gk 300 | K 300 is not divisible by base-n 256",
                "--strict --gn 300 | N 300 is not divisible by base-n 256",
                "--strict -n 3 | 3 ranks do not divide the 16 row groups",
                "--strict -n 32 --gm 4096 | 32 ranks are more than 16",
                "--strict --shards 1152,896 | are uneven",
                "--data seed19 --seed 5 | --seed 5 with --data seed19",
                "--bogus | '--bogus'"
            })
    void runRefusesWithOneLine(String arguments, String expected) throws IOException {
        List<String> command = new ArrayList<>(List.of("run"));
        command.addAll(List.of(arguments.split(" ")));
        command.addAll(List.of("--data-dir", folder.resolve("out").toString()));
        Invocation run = Invocation.of(command.toArray(String[]::new));
        assertEquals(ExitCode.USAGE, run.code(), run.err());
        assertEquals(1, run.err().lines().count(), run.err());
        assertTrue(run.err().startsWith("weft: "), run.err());
        assertTrue(run.err().contains(expected), run.err());
        try (Stream<Path> written = Files.list(folder)) {
            assertEquals(List.of(), written.toList(), "nothing half-written");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "sweep | a simulation needs -v: expected one of Ascend910B1",
                "sweep -v NoSuch | --soc-version: unknown machine 'NoSuch'",
                "sweep -v trn2 --gm 1,x | --gm '1,x': expected numbers from 0 to",
                "sweep -v trn2 --gm 8..4 | --gm '8..4': expected numbers",
                "sweep -v trn2 --gk 0 | --gk '0': expected numbers from 1 to",
                "sweep -v trn2 -n 0..4 | --n-ranks '0..4': expected numbers from 1 to 4096",
                "sweep -v trn2 -n 5000 | --n-ranks '5000'",
                "sweep -v trn2 --splits 0 | --splits-per-rank '0': expected numbers from 1",
                "sweep -v trn2 --algorithm tree | unknown algorithm 'tree'",
                "sweep -v trn2 --algorithm ring,auto | --algorithm auto: a sweep prices each one",
                "sweep -v trn2 --rhs x | --rhs 'x': expected one of replicated, column-sharded",
                "sweep -v trn2 --dtype fp8 | unknown dtype 'fp8'",
                "sweep -v trn2 --json - --csv - | expected one of them in a file",
                "sweep -v trn2 --csv /nowhere/s.csv | --csv /nowhere/s.csv: expected a file",
                "sweep -v trn2 --gm 1..524288 --gk 1..524288 --gn 1..524288 | 48000 combinations",
                "plan | a simulation needs -v: expected one of Ascend910B1",
                "plan -v trn2 --gm 0 | --gm 0: expected 1 to",
                "plan -v trn2 --gm 9223372036854775807 | expected 1 to 2199023254528",
                "plan -v trn2 --gm 2199023254528 --gk 2199023254528 | expected at most 922337",
                "sweep -v trn2 --gm 2199023254528 --gk 2199023254528 | expected at most 922337",
                "plan -v trn2 --rhs x | --rhs 'x': expected one of",
                "plan -v Ascend910B1 -n 32 | 32 ranks on Ascend910B1: expected at most 16",
                "plan -v trn2 --json /nowhere/p.json | --json /nowhere/p.json: expected a file",
                "calibrate --gpu --quick | --gpu with --quick: expected neither --engine nor",
                "calibrate --gpu --engine scalar | --gpu with --engine scalar: expected neither"
            })
    void sweepPlanAndCalibrateRefuseWithOneLine(String command, String expected) {
        Invocation.ofWords(command).assertRefused(expected);
    }

    @ParameterizedTest
    @ValueSource(strings = {"device", "host"})
    void aMissingGpuIsAnErrorThatSaysHowToGetOne(String peers) {
        String why = Gpu.unavailable().orElse("");
        assumeFalse(why.isEmpty(), "there is a GPU");
        Invocation run =
                Invocation.ofWords(
                        "run -r cuda --peers " + peers + " --data-dir " + folder.resolve("out"));
        assertEquals(ExitCode.USAGE, run.code(), run.err());
        assertEquals("weft: --run-mode cuda: no GPU: " + why + "\n", run.err());
        assertFalse(Files.exists(folder.resolve("out")), "nothing half-written");
    }

    @Test
    void filesOfTheWrongSizeAreRefused() throws IOException {
        Path raw = Files.write(folder.resolve("a.bin"), new byte[100]);
        Invocation run =
                Invocation.ofWords(
                        "run --a %s --b %s --gm 8 --gk 8 --gn 8 --data-dir %s"
                                .formatted(raw, raw, folder.resolve("out")));
        assertEquals(ExitCode.USAGE, run.code(), run.err());
        assertTrue(run.err().contains("100"), "names the actual size: " + run.err());
        assertTrue(run.err().contains("128"), "names the expected size: " + run.err());
        assertFalse(Files.exists(folder.resolve("out")));
    }

    @Test
    void aDataFolderThatCannotBeWrittenIsNamed() throws IOException {
        Path file = Files.createFile(folder.resolve("file"));
        Invocation run = Invocation.of("gen-data", "--data-dir", file.resolve("x").toString());
        assertEquals(ExitCode.USAGE, run.code(), run.err());
        assertTrue(run.err().contains("--data-dir " + file.resolve("x")), run.err());
    }

    @Test
    void aShapeTooLargeForTheMachineIsOneLine() {
        Invocation run =
                Invocation.ofWords(
                        "gen-data --gm 4000000 --gk 4000000 --data-dir " + folder.resolve("out"));
        run.assertRefused("the problem needs at least 29.1 TiB of memory, this host has");
        assertFalse(Files.exists(folder.resolve("out")));
    }

    @Test
    void verifyWithoutDataSaysWhatToDo() {
        Invocation run = Invocation.of("verify", "--data-dir", folder.toString());
        assertEquals(ExitCode.USAGE, run.code(), run.err());
        assertTrue(run.err().contains("run gen-data or run first"), run.err());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "run",
                "sweep",
                "plan",
                "launch",
                "gen-data",
                "verify",
                "doctor",
                "completion",
                "java",
                "javac",
                "install",
                "test",
                "soak",
                "faults",
                "stragglers",
                "fuzz",
                "prove",
                "dist"
            })
    void everyCommandHasHelpWithAnExample(String command) {
        // For Java itself, --help is an option like any other.
        Invocation help =
                command.startsWith("java")
                        ? Invocation.of("help", command)
                        : Invocation.of(command, "--help");
        assertEquals(0, help.code());
        assertTrue(help.out().contains("Example"), help.out());
        assertTrue(help.out().contains("./weft " + command) || command.equals("completion"));
    }

    @Test
    void versionHelpCompletionAndNoCommand() {
        assertTrue(Invocation.of("--version").out().startsWith("weft "));
        assertTrue(Invocation.of("--help").out().contains("gen-data"));
        assertFalse(Invocation.of("--help").out().contains("  rank "), "hidden command");
        assertTrue(Invocation.of("completion").out().contains("--algorithm"));
        assertEquals(ExitCode.USAGE, Invocation.of().code());
        assertEquals(ExitCode.USAGE, Invocation.of("nonsense").code());
    }

    @Test
    void doctorTellsOfEveryPart() {
        Invocation doctor = Invocation.of("doctor");
        assertEquals(0, doctor.code());
        for (String part :
                List.of(
                        "Java",
                        "Cores",
                        "Caches",
                        "Product engine",
                        "  for bf16",
                        "Shared memory",
                        "MPI",
                        "CUDA",
                        "NVRTC",
                        "cublasLt",
                        "GPU kernels",
                        "OpenBLAS")) {
            assertTrue(doctor.out().contains(part + ":"), part + " in " + doctor.out());
        }
    }
}
