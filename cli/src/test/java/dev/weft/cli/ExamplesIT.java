package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
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

    private static List<String> java() {
        return List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--add-modules",
                "jdk.incubator.vector",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"));
    }

    @ParameterizedTest
    @MethodSource("examples")
    void anExampleRuns(Path example) throws Exception {
        boolean launched = example.getParent().endsWith("launch");
        List<String> command = new ArrayList<>(java());
        if (launched) {
            command.addAll(List.of(Main.class.getName(), "launch", "-n", LAUNCHED + "", "--"));
            command.addAll(java());
        }
        command.add(example.toString());
        Path output = folder.resolve("output");
        Path errors = folder.resolve("errors");
        Process process =
                new ProcessBuilder(command)
                        .redirectOutput(output.toFile())
                        .redirectError(errors.toFile())
                        .start();
        boolean ended = process.waitFor(180, TimeUnit.SECONDS);
        process.descendants().forEach(ProcessHandle::destroyForcibly);
        process.destroyForcibly();
        assertTrue(ended, example + " hangs");
        assertEquals(0, process.exitValue(), Files.readString(errors));
        List<String> printed = Files.readAllLines(output);
        assertFalse(printed.isEmpty(), "an example shows something");
        if (launched) {
            assertEquals(LAUNCHED, printed.size(), "a line per rank: " + printed);
        }
    }
}
