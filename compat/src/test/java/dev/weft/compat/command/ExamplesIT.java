package dev.weft.compat.command;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.fasterxml.jackson.core.JsonFactory;
import dev.weft.cli.ChildProcess;
import dev.weft.cli.Main;
import dev.weft.compat.Helion;
import dev.weft.op.AllGatherMatmul;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every example compiles, runs and ends well; that of the launcher through the launcher. */
@Execution(ExecutionMode.CONCURRENT)
class ExamplesIT {

    private static final Path EXAMPLES = Path.of("..", "examples");
    private static final int LAUNCHED = 3;

    @TempDir Path folder;

    static List<Path> examples() throws IOException {
        try (Stream<Path> files = Files.walk(EXAMPLES, 2)) {
            return files.filter(file -> file.toString().endsWith(".java")).sorted().toList();
        }
    }

    static List<Path> programs() throws IOException {
        // Algorithms are no programs: see AlgorithmIT.
        return examples().stream()
                .filter(file -> !file.getParent().endsWith("algorithm"))
                .filter(file -> !file.getParent().endsWith("reduction"))
                .toList();
    }

    /** On the module path, where the compiler sees no more than the modules export. */
    @ParameterizedTest
    @MethodSource("examples")
    void anExampleNeedsOnlyWhatIsExported(Path example) throws Exception {
        StringWriter messages = new StringWriter();
        PrintWriter out = new PrintWriter(messages);
        int code =
                ToolProvider.findFirst("javac")
                        .orElseThrow()
                        .run(
                                out,
                                out,
                                "--module-path",
                                Stream.of(Helion.class, AllGatherMatmul.class, JsonFactory.class)
                                        .map(ExamplesIT::place)
                                        .collect(Collectors.joining(File.pathSeparator)),
                                "--add-modules",
                                "dev.weft.compat",
                                "-d",
                                folder.toString(),
                                example.toString());
        assertEquals(0, code, messages::toString);
    }

    private static String place(Class<?> type) {
        return Path.of(
                        URI.create(
                                type.getProtectionDomain()
                                        .getCodeSource()
                                        .getLocation()
                                        .toString()))
                .toString();
    }

    @ParameterizedTest
    @MethodSource("programs")
    void anExampleRuns(Path example) throws Exception {
        boolean launched = example.getParent().endsWith("launch");
        ChildProcess.Setup setup =
                ChildProcess.java(folder, example.toString(), List.of()).wellCompiled();
        if (launched) {
            List<String> launcher = ChildProcess.java();
            launcher.addAll(List.of(Main.class.getName(), "launch", "-n", LAUNCHED + "", "--"));
            setup.under(launcher);
        }
        ChildProcess process = setup.run();
        assertEquals(0, process.code(), process::toString);
        List<String> printed = process.out().lines().toList();
        assertFalse(printed.isEmpty(), "an example shows something");
        if (launched) {
            assertEquals(LAUNCHED, printed.size(), "a line per rank: " + printed);
        }
    }
}
