package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.fasterxml.jackson.core.JsonFactory;
import dev.weft.op.AllGatherMatmul;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Every example compiles, runs and ends well; that of the launcher through the launcher. */
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
        // The algorithm is no program: see AlgorithmIT.
        return examples().stream().filter(file -> !file.getParent().endsWith("algorithm")).toList();
    }

    /** On the module path, where the compiler sees no more than the library exports. */
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
                                place(AllGatherMatmul.class)
                                        + File.pathSeparator
                                        + place(JsonFactory.class),
                                "--add-modules",
                                "dev.weft",
                                "-d",
                                folder.toString(),
                                example.toString());
        assertEquals(0, code, messages::toString);
    }

    private static Path place(Class<?> type) throws URISyntaxException {
        return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
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
