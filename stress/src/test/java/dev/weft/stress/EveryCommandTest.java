package dev.weft.stress;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cuda.Gpu;
import dev.weft.gemm.Gemms;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;

/**
 * Every command runs to its end, at the smallest size, with every engine that this machine has. A
 * command that is in none of the lists here fails the test.
 */
class EveryCommandTest extends CommandTest {

    private static final String SMALL = " -n 2 --gm 8 --gk 8 --gn 8";
    private static final String SHORT = " --algorithm ring --warmup 1 --iterations 1";

    /** In this order: later ones read what earlier ones wrote. DIR is a folder of the test's. */
    private static final List<String> RUN =
            List.of(
                    "run" + SMALL + SHORT + " --engine scalar --data-dir DIR/out --json DIR/r.json",
                    "verify --data-dir DIR/out",
                    "report DIR/r.json",
                    "gen-data" + SMALL + " --data-dir DIR/data",
                    "sweep -v trn2" + SMALL,
                    "plan -v trn2" + SMALL,
                    "ring -n 2 --m 4 --k 4 --n-local 4 --warmup 1 --iterations 1",
                    "fgcc -n 2 --m 4 --k 4 --n 4 --warmup 1 --iterations 1",
                    "gather -n 2 --h 4 --w 4 --warmup 1 --iterations 1",
                    "helion -n 2 --m 4 --k 4 --n 4 --warmup 1 --iterations 1",
                    "launch -n 2 -- true",
                    "doctor",
                    "completion",
                    "help",
                    "bench ascend --quick --only predicted --rows 1",
                    "faults --case ranks=2_fault=throw_phase=first-chunk_algorithm=ring",
                    "stragglers --calls 4 -n 2",
                    "fuzz --target number-list --seconds 1");

    private static final List<String> RUN_ON_A_GPU =
            List.of(
                    "run -r cuda --engine gated" + SMALL + SHORT + " --data-dir DIR/gpu",
                    "run -r cuda --engine cublas" + SMALL + SHORT + " --data-dir DIR/gpu",
                    "calibrate --gpu --output DIR/gpu.json",
                    "ring -r cuda -n 2 --m 4 --k 8 --n-local 8",
                    "fgcc -r cuda -n 2 --m 4 --k 8 --n 8",
                    "gather -r cuda -n 2 --h 4 --w 8",
                    "helion -r cuda -n 2 --m 4 --k 8 --n 8",
                    "bench gpu --quick --only calls");

    /** With every engine in place of ENGINE. */
    private static final List<String> RUN_WITH_ENGINES =
            List.of(
                    "run --dtype bf16 --engine ENGINE" + SMALL + SHORT + " --data-dir DIR/ENGINE",
                    "verify --engine ENGINE --data-dir DIR/ENGINE",
                    "run --dtype fp8 --engine ENGINE" + SMALL + SHORT + " --data-dir DIR/ENGINE-8",
                    "calibrate --quick --engine ENGINE --output DIR/ENGINE.json");

    /** What takes longer, or needs a process or a clone of its own: which test runs it, and how. */
    private static final Map<String, String> RUN_BY =
            Map.ofEntries(
                    Map.entry("demo", "cli cli/run/LinkedRunTest.java: \"demo\""),
                    Map.entry("lab", "cli cli/LabIT.java: lab"),
                    Map.entry("test", "compat compat/command/DistIT.java: \"test\""),
                    Map.entry("dist", "compat compat/command/DistIT.java: \"dist\""),
                    Map.entry("install", "library ConsumerIT.java: \"install\""),
                    Map.entry("java", "cli cli/TutorialIT.java: ./weft java "),
                    Map.entry("javac", "cli cli/TutorialIT.java: ./weft javac "),
                    Map.entry(
                            "pack-kernels", "compat compat/command/DistIT.java: COPYING_COMPILER"),
                    Map.entry("soak", "stress stress/CommandsTest.java: \"soak\""),
                    Map.entry("prove", "stress model/ProveCommandTest.java: --smoke"),
                    Map.entry("bench cpu", "bench bench/BenchIT.java: \"cpu\""),
                    Map.entry(
                            "bench gather-ranks",
                            "bench bench/cpu/GatherCaseIT.java: new GatherCase("),
                    Map.entry("bench reduce-rank", "bench bench/BenchIT.java: ratios(\"reduce\")"));

    @TempDir static Path folder;

    private static final Set<String> STRESS = Main.commandLine().getSubcommands().keySet();

    /** The words of every command, also of hidden ones and of those that add-ons bring. */
    private static List<String> names(CommandSpec parent, String before) {
        List<String> names = new ArrayList<>();
        for (CommandLine child : new LinkedHashSet<>(parent.subcommands().values())) {
            CommandSpec spec = child.getCommandSpec();
            String name = before + spec.name();
            names.addAll(spec.subcommands().isEmpty() ? List.of(name) : names(spec, name + " "));
        }
        return names;
    }

    private static CommandSpec all() {
        return dev.weft.cli.Main.commandLine().getCommandSpec();
    }

    @Test
    void everyCommandIsRunSomewhere() {
        Set<String> known = new TreeSet<>(names(all(), ""));
        assertTrue(known.containsAll(STRESS) && known.contains("bench cpu"), known.toString());
        Set<String> listed =
                Stream.of(RUN, RUN_ON_A_GPU, RUN_WITH_ENGINES)
                        .flatMap(List::stream)
                        .map(line -> line.replaceFirst("^(bench \\S+|\\S+).*", "$1"))
                        .collect(Collectors.toCollection(TreeSet::new));
        listed.addAll(RUN_BY.keySet());
        assertEquals(known, listed);
    }

    @Test
    void otherTestsRunThem() throws IOException {
        for (Map.Entry<String, String> other : RUN_BY.entrySet()) {
            String[] parts = other.getValue().split(": | ", 3);
            Path file = Path.of("..", parts[0], "src/test/java/dev/weft", parts[1]);
            assertTrue(Files.readString(file).contains(parts[2]), other.toString());
        }
    }

    /** All that have a choice of engines on the CPU are run with each. */
    @Test
    void commandsWithEnginesAreListed() {
        Set<String> having =
                names(all(), "").stream()
                        .filter(name -> !RUN_BY.containsKey(name) && !name.contains(" "))
                        .filter(
                                name ->
                                        all().subcommands()
                                                        .get(name)
                                                        .getCommandSpec()
                                                        .findOption("--engine")
                                                != null)
                        .collect(Collectors.toCollection(TreeSet::new));
        assertEquals(
                having,
                RUN_WITH_ENGINES.stream()
                        .map(line -> line.split(" ")[0])
                        .collect(Collectors.toCollection(TreeSet::new)));
    }

    static List<String> onThisMachine() {
        return RUN;
    }

    @ParameterizedTest
    @MethodSource("onThisMachine")
    void itRunsToItsEnd(String line) {
        assertRuns(line);
    }

    static List<String> onAGpu() {
        return RUN_ON_A_GPU;
    }

    @ParameterizedTest
    @MethodSource("onAGpu")
    void itRunsToItsEndOnAGpu(String line) {
        Optional<String> why = Gpu.unavailable();
        assumeTrue(why.isEmpty(), () -> "no GPU: " + why.orElseThrow());
        assertRuns(line);
    }

    static List<String> withEngines() {
        return RUN_WITH_ENGINES.stream()
                .flatMap(line -> Gemms.NAMES.stream().map(name -> line.replace("ENGINE", name)))
                .toList();
    }

    @ParameterizedTest
    @MethodSource("withEngines")
    void itRunsToItsEndWithEveryEngine(String line) {
        String engine = line.replaceFirst(".*--engine (\\S+).*", "$1");
        Optional<String> why = unavailable(engine, line.contains("fp8"));
        assumeTrue(why.isEmpty(), why::orElseThrow);
        assertRuns(line);
    }

    /** Why this machine does not have the engine; operands of 8 bits are multiplied as fp32. */
    private static Optional<String> unavailable(String engine, boolean eightBits) {
        DType type = eightBits ? DType.FP32 : DType.BF16;
        try {
            Gemms.byName(engine, type, type);
            return Optional.empty();
        } catch (IllegalArgumentException | IllegalStateException e) {
            return Optional.of(e.getMessage());
        }
    }

    private void assertRuns(String line) {
        String[] words =
                Stream.of(line.split(" "))
                        .map(word -> word.replace("DIR", folder.toString()))
                        .map(word -> word.startsWith("ranks=") ? word.replace('_', ' ') : word)
                        .toArray(String[]::new);
        CommandLine command =
                STRESS.contains(words[0])
                        ? Main.commandLine()
                        : dev.weft.cli.Main.commandLine(words);
        assertEquals(0, run(command, words), () -> line + "\n" + err + out);
    }
}
