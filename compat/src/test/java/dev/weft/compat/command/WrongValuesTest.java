package dev.weft.compat.command;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import dev.weft.cli.Invocation;
import dev.weft.cli.Main;
import dev.weft.cli.console.ExitCode;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/**
 * Every option of every command, as the commands themselves list them, with values that cannot be
 * right: exit code 2, one line that names option or value, nothing printed, nothing written. An
 * option that is new here fails until it is said what its values are.
 */
class WrongValuesTest {

    /**
     * Kinds of values, and what is none; a blank stands between values, {@code ~} is an empty one.
     */
    private enum Kind {
        COUNT("nonsense ~ 99999999999999999999 1e400 NaN -1 1.5 0 \u0663 0x10"),
        AMOUNT("nonsense ~ 99999999999999999999 1e400 NaN -1 1.5 \u0663"),
        SEED("nonsense ~ 99999999999999999999 1e400 NaN 1.5 \u0663"),
        COUNTS("nonsense ~ 99999999999999999999 NaN 1,,2 1,-2 1;2 -1 1,2, \u0661,\u0662"),
        WORD("nonsense ~ NaN 0 -1"),
        DURATION("5parsecs ~ 0 -1s 99999999999999999999 NaN 1e400"),
        MACHINE("nonsense ~ /nowhere/machine.json"),
        READ_FILE("/nowhere/file.npy ~ /"),
        WRITTEN_FILE("/nowhere/file / ~"),
        SLOWED(
                "nonsense ~ 1 1= =2 1=NaN 1=-2 -1=2 1=1e400 99999999999999999999=2 1=2, 1=\u0662 \u0661=2"),
        GROUPS(
                "nonsense ~ 0,1/1,2 0,,1 0/ -1 0;1 0,99999999999999999999 NaN 0,4096 0,1, \u0660,\u0661"),
        NONE("nonsense ~ NaN 1 -1 1.5"),
        FOLDER("/dev/null/logs ~"),
        ENDPOINT("192.0.2.1:80 ~ localhost:x localhost:99999 :80"),
        /** Any text will do. */
        TEXT("");

        final List<String> wrong;

        Kind(String values) {
            this.wrong =
                    Stream.of(values.split(" "))
                            .filter(value -> !value.isEmpty())
                            .map(value -> value.equals("~") ? "" : value)
                            .toList();
        }
    }

    /** By name; where commands differ, by command and name. */
    private static final Map<String, Kind> KINDS =
            Map.ofEntries(
                    Map.entry("--n-ranks", Kind.COUNT),
                    Map.entry("plan --n-ranks", Kind.COUNTS),
                    Map.entry("sweep --n-ranks", Kind.COUNTS),
                    Map.entry("--gm", Kind.AMOUNT),
                    Map.entry("--gk", Kind.COUNT),
                    Map.entry("--gn", Kind.AMOUNT),
                    Map.entry("plan --gm", Kind.COUNT),
                    Map.entry("plan --gn", Kind.COUNT),
                    Map.entry("sweep --gm", Kind.COUNTS),
                    Map.entry("sweep --gk", Kind.COUNTS),
                    Map.entry("sweep --gn", Kind.COUNTS),
                    Map.entry("sweep --splits-per-rank", Kind.COUNTS),
                    Map.entry("--shards", Kind.COUNTS),
                    Map.entry("--op", Kind.WORD),
                    Map.entry("--k-parts", Kind.COUNTS),
                    Map.entry("--order", Kind.WORD),
                    Map.entry("--experts", Kind.COUNT),
                    Map.entry("--experts-per-row", Kind.COUNT),
                    Map.entry("--routing", Kind.WORD),
                    Map.entry("--num-groups", Kind.COUNT),
                    Map.entry("--tp-degree", Kind.COUNT),
                    Map.entry("--block-sizes", Kind.COUNTS),
                    Map.entry("--num-warps", Kind.COUNT),
                    Map.entry("--num-stages", Kind.COUNT),
                    Map.entry("--replica-groups", Kind.GROUPS),
                    Map.entry("--dtype", Kind.WORD),
                    Map.entry("--a-dtype", Kind.WORD),
                    Map.entry("--b-dtype", Kind.WORD),
                    Map.entry("--scales", Kind.WORD),
                    Map.entry("--out-dtype", Kind.WORD),
                    Map.entry("--rhs", Kind.WORD),
                    Map.entry("--seed", Kind.SEED),
                    Map.entry("--data", Kind.WORD),
                    Map.entry("--data-dir", Kind.FOLDER),
                    Map.entry("verify --data-dir", Kind.READ_FILE),
                    Map.entry("--run-mode", Kind.WORD),
                    Map.entry("--peers", Kind.WORD),
                    Map.entry("--soc-version", Kind.MACHINE),
                    Map.entry("--algorithm", Kind.WORD),
                    Map.entry("--launcher", Kind.WORD),
                    Map.entry("--hostfile", Kind.READ_FILE),
                    Map.entry("--mpi-args", Kind.TEXT),
                    Map.entry("--link", Kind.WORD),
                    Map.entry("--engine", Kind.WORD),
                    Map.entry("--epilogue", Kind.WORD),
                    Map.entry("--base-m", Kind.COUNT),
                    Map.entry("--base-n", Kind.COUNT),
                    Map.entry("--compute-blocks", Kind.COUNT),
                    Map.entry("--comm-blocks", Kind.COUNT),
                    Map.entry("--splits-per-rank", Kind.COUNT),
                    Map.entry("--chunk-rows", Kind.COUNT),
                    Map.entry("--chunk-rule", Kind.WORD),
                    Map.entry("--warmup", Kind.AMOUNT),
                    Map.entry("--iterations", Kind.COUNT),
                    Map.entry("--deadline", Kind.DURATION),
                    Map.entry("--a", Kind.READ_FILE),
                    Map.entry("--b", Kind.READ_FILE),
                    Map.entry("--c", Kind.WRITTEN_FILE),
                    Map.entry("--json", Kind.WRITTEN_FILE),
                    Map.entry("--csv", Kind.WRITTEN_FILE),
                    Map.entry("--report", Kind.WRITTEN_FILE),
                    Map.entry("--trace", Kind.WRITTEN_FILE),
                    Map.entry("--output", Kind.WRITTEN_FILE),
                    Map.entry("--label", Kind.TEXT),
                    Map.entry("--slow", Kind.SLOWED),
                    Map.entry("--lnc", Kind.COUNT),
                    Map.entry("--on-chip-bytes", Kind.AMOUNT),
                    Map.entry("--n", Kind.COUNT),
                    Map.entry("--n-global", Kind.COUNT),
                    Map.entry("--n-local", Kind.COUNT),
                    Map.entry("--h", Kind.AMOUNT),
                    Map.entry("--w", Kind.COUNT),
                    Map.entry("--m", Kind.AMOUNT),
                    Map.entry("--k", Kind.COUNT),
                    Map.entry("--nproc-per-node", Kind.COUNT),
                    Map.entry("--nnodes", Kind.COUNT),
                    Map.entry("--rdzv-backend", Kind.WORD),
                    Map.entry("--rdzv-endpoint", Kind.ENDPOINT),
                    Map.entry("--rdzv-id", Kind.TEXT),
                    Map.entry("--max-restarts", Kind.AMOUNT),
                    Map.entry("--log-dir", Kind.FOLDER),
                    Map.entry("--tee", Kind.NONE),
                    Map.entry("--redirects", Kind.NONE),
                    Map.entry("--port", Kind.AMOUNT),
                    Map.entry("--out", Kind.TEXT),
                    Map.entry("--runtime", Kind.TEXT),
                    Map.entry("--nvcc", Kind.READ_FILE));

    /** What an option needs beside it, in place of what its command needs. */
    private static final Map<String, String> BESIDE =
            Map.ofEntries(
                    Map.entry("sweep", "-v trn2"),
                    Map.entry("plan", "-v trn2"),
                    Map.entry("sweep --soc-version", ""),
                    Map.entry("plan --soc-version", ""),
                    Map.entry("run --soc-version", "-r sim"),
                    Map.entry("run --slow", "-r sim -v trn2"),
                    Map.entry("run --peers", "-r cuda"),
                    Map.entry("run --hostfile", "--launcher mpi"),
                    Map.entry("run --k-parts", "--op matmul-allreduce"),
                    Map.entry("gen-data --k-parts", "--op matmul-allreduce"),
                    Map.entry("run --order", "--op matmul-reduce-scatter"),
                    Map.entry("run --a", "--b A.npy"),
                    Map.entry("run --b", "--a A.npy"),
                    Map.entry("report", "record.json"),
                    Map.entry("launch", "true"),
                    Map.entry("launch --hostfile", "--mpi true"),
                    Map.entry("report --port", "--serve record.json"),
                    Map.entry("pack-kernels", "--out ."));

    private static final CommandLine PARSER = Main.commandLine();

    @TempDir private Path folder;

    private static List<CommandSpec> commands(CommandSpec parent) {
        List<CommandSpec> leaves = new ArrayList<>();
        for (CommandLine child : new LinkedHashSet<>(parent.subcommands().values())) {
            CommandSpec spec = child.getCommandSpec();
            leaves.addAll(spec.subcommands().isEmpty() ? List.of(spec) : commands(spec));
        }
        return leaves;
    }

    /** The words for a command, without the program's own name. */
    private static String name(CommandSpec command) {
        return command.qualifiedName(" ").replaceFirst("^weft ", "");
    }

    static List<String> optionsWithValues() {
        List<String> options = new ArrayList<>();
        for (CommandSpec command : commands(Main.commandLine().getCommandSpec())) {
            for (OptionSpec option : command.options()) {
                if (option.arity().max() > 0 && !option.usageHelp() && !option.versionHelp()) {
                    options.add(name(command) + " " + option.longestName());
                }
            }
        }
        return options;
    }

    static List<String> commandNames() {
        return commands(Main.commandLine().getCommandSpec()).stream()
                .map(WrongValuesTest::name)
                // It shows the help text, whatever else is said.
                .filter(name -> !name.equals("help"))
                .toList();
    }

    private static Kind kind(String commandAndOption) {
        String option = commandAndOption.substring(commandAndOption.lastIndexOf(' ') + 1);
        return KINDS.getOrDefault(commandAndOption, KINDS.get(option));
    }

    @Test
    void itIsKnownWhatEveryOptionTakes() {
        assertEquals(
                List.of(),
                optionsWithValues().stream().filter(option -> kind(option) == null).toList());
        assertFalse(optionsWithValues().isEmpty());
    }

    @ParameterizedTest
    @MethodSource("optionsWithValues")
    void wrongValuesAreRefusedInOneLine(String commandAndOption) throws IOException {
        int cut = commandAndOption.lastIndexOf(' ');
        String command = commandAndOption.substring(0, cut);
        String option = commandAndOption.substring(cut + 1);
        List<String> complaints = new ArrayList<>();
        for (String value : kind(commandAndOption).wrong) {
            complaints.addAll(complaints(command, option, value));
        }
        assertEquals(List.of(), complaints);
    }

    @ParameterizedTest
    @MethodSource("optionsWithValues")
    void aMissingValueIsRefused(String commandAndOption) throws IOException {
        List<String> arguments = List.of(commandAndOption.split(" "));
        assertEquals(List.of(), complaints(arguments, arguments.getLast()));
    }

    @ParameterizedTest
    @MethodSource("commandNames")
    void unknownOptionsAreRefused(String command) throws IOException {
        List<String> arguments = new ArrayList<>(List.of(command.split(" ")));
        arguments.add("--no-such-option");
        assertEquals(List.of(), complaints(arguments, "--no-such-option", "Missing", "needs a"));
    }

    /** The parser has a voice of its own, which is not the command's. */
    @Test
    void aStrayQuoteIsToldInOneLine() {
        PrintStream before = System.err;
        ByteArrayOutputStream told = new ByteArrayOutputStream();
        System.setErr(new PrintStream(told, true, StandardCharsets.UTF_8));
        try {
            Invocation run = Invocation.of("run", "--shards", "5\"3");
            assertEquals(ExitCode.USAGE, run.code(), run.err());
            assertEquals(1, run.err().lines().count(), run.err());
        } finally {
            System.setErr(before);
        }
        assertEquals("", told.toString(StandardCharsets.UTF_8));
    }

    private List<String> complaints(String command, String option, String value)
            throws IOException {
        List<String> arguments = new ArrayList<>(List.of(command.split(" ")));
        arguments.add(option);
        arguments.add(value);
        String beside =
                BESIDE.getOrDefault(command + " " + option, BESIDE.getOrDefault(command, ""));
        if (!beside.isEmpty()) {
            arguments.addAll(List.of(beside.replace("A.npy", aMatrix()).split(" ")));
        }
        // What is accepted by mistake must not take long, nor leave anything where it runs.
        if (Set.of("run", "gen-data").contains(command) && !option.equals("--data-dir")) {
            arguments.addAll(List.of("--data-dir", folder.resolve("out").toString()));
        }
        return complaints(arguments, value, option.substring(2));
    }

    /** A file that is as it should be. */
    private String aMatrix() throws IOException {
        Path file = folder.resolve("a.npy");
        try (Arena arena = Arena.ofConfined()) {
            MatrixFiles.write(file.toString(), Matrix.allocate(arena, DType.FP16, 4, 4));
        }
        return file.toString();
    }

    /**
     * @param named one of them has to be in the message
     */
    private List<String> complaints(List<String> arguments, String... named) throws IOException {
        Set<String> before = here();
        Invocation run = Invocation.on(PARSER, arguments.toArray(String[]::new));
        List<String> complaints = new ArrayList<>();
        String what = String.join(" ", arguments) + ": ";
        if (run.code() != ExitCode.USAGE) {
            complaints.add(what + "exit code " + run.code() + ", " + run.err());
        }
        if (run.err().lines().count() != 1 || !run.err().startsWith("weft: ")) {
            complaints.add(what + "says '" + run.err() + "'");
        }
        if (Stream.of(named).noneMatch(word -> !word.isEmpty() && run.err().contains(word))) {
            complaints.add(what + "does not say what is wrong: " + run.err());
        }
        if (!run.out().isEmpty()) {
            complaints.add(what + "prints " + run.out());
        }
        if (!here().equals(before)) {
            complaints.add(what + "leaves " + here());
        }
        return complaints;
    }

    /** What lies where commands run, and where this test lets them write. */
    private Set<String> here() throws IOException {
        Set<String> names = new TreeSet<>();
        for (Path place : List.of(Path.of("").toAbsolutePath(), folder)) {
            try (Stream<Path> files = Files.list(place)) {
                files.forEach(file -> names.add(file.toString()));
            }
        }
        return names;
    }
}
