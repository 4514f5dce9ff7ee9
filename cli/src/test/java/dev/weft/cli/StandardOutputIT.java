package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.cli.console.ExitCode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Commands in a JVM of their own whose standard output takes nothing. */
class StandardOutputIT {

    private static final long LIMIT_SECONDS = 120;
    private static final File FULL = new File("/dev/full");

    @TempDir Path folder;

    private ProcessBuilder weft(String arguments) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of(
                        "--add-modules",
                        "jdk.incubator.vector",
                        "--enable-native-access=ALL-UNNAMED",
                        "-Dweft.kernel.flags=set",
                        "-cp",
                        System.getProperty("java.class.path"),
                        "dev.weft.cli.Main"));
        command.addAll(List.of(arguments.split(" ")));
        return new ProcessBuilder(command).redirectError(errors().toFile());
    }

    private Path errors() {
        return folder.resolve("errors");
    }

    private static int end(Process process) throws InterruptedException {
        assertTrue(process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS), "it ends");
        return process.exitValue();
    }

    /** Without what the JVM says by itself. */
    private List<String> told() throws IOException {
        return Files.readAllLines(errors()).stream()
                .filter(line -> !line.startsWith("WARNING: Using incubator modules"))
                .toList();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "run --gm 8 --gk 8 --gn 8 --warmup 0 --iterations 1 --json - --data-dir ",
                "run --gm 8 --gk 8 --gn 8 --warmup 0 --iterations 1 --data-dir ",
                "sweep -v trn2 --gm 64 --gk 64 --gn 64 --json -",
                "report --serve no.json",
                "completion",
                "--help",
                "--version",
                "doctor"
            })
    void lostOutputIsAFailureThatSaysWhy(String arguments)
            throws IOException, InterruptedException {
        assumeTrue(FULL.exists(), "no /dev/full here");
        String all =
                arguments.endsWith(" ")
                        ? arguments + folder.resolve("out")
                        : arguments.replace("no.json", sweep().toString());
        Process process = weft(all).redirectOutput(FULL).start();
        assertEquals(ExitCode.FAILED, end(process));
        assertEquals(
                List.of("weft: cannot write to standard output: No space left on device"), told());
    }

    private Path sweep() {
        Path record = folder.resolve("sweep.json");
        String arguments = "sweep -v trn2 --gm 64 --gk 64 --gn 64 --json " + record;
        assertEquals(0, Invocation.of(arguments.split(" ")).code());
        return record;
    }

    @Test
    void whoReadsOnlyTheFirstLinesHearsNothing() throws IOException, InterruptedException {
        Process process = weft("completion").start();
        process.getInputStream().close();
        assertEquals(141, end(process), "as of a program that SIGPIPE has ended");
        assertEquals(List.of(), told());
    }
}
