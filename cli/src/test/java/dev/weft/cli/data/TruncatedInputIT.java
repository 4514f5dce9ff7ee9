package dev.weft.cli.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.console.ExitCode;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import dev.weft.tensor.NormalData;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whoever shortens a run's inputs meanwhile does not bring its JVM down. */
class TruncatedInputIT {

    private static final long LIMIT_SECONDS = 120;

    @TempDir private Path folder;

    private final StringBuilder printed = new StringBuilder();

    private Process start(String arguments) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of("--add-modules", "jdk.incubator.vector", "-XX:-CreateCoredumpOnCrash"));
        command.addAll(List.of("--enable-native-access=ALL-UNNAMED"));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), "dev.weft.cli.Main"));
        command.addAll(List.of("run", "-n", "2", "--data-dir", "out"));
        command.addAll(List.of("--warmup", "1", "--iterations", "20"));
        command.addAll(List.of(arguments.split(" ")));
        return new ProcessBuilder(command)
                .directory(folder.toFile())
                .redirectError(folder.resolve("stderr").toFile())
                .start();
    }

    private void matrix(String name, long rows, long cols) throws IOException {
        try (Arena arena = Arena.ofShared()) {
            Matrix matrix = Matrix.allocate(arena, DType.FP16, rows, cols);
            new NormalData(rows, 1).fill(matrix);
            MatrixFiles.write(folder.resolve(name).toString(), matrix);
        }
    }

    private void truncate(String name) throws IOException {
        try (FileChannel file = FileChannel.open(folder.resolve(name), StandardOpenOption.WRITE)) {
            file.truncate(100);
        }
    }

    /** The exit code of a run whose files are cut as soon as it says that it warms up. */
    private int runAndTruncate(String arguments, String... files) throws Exception {
        Process process = start(arguments);
        try (BufferedReader out = process.inputReader()) {
            for (String line = out.readLine(); line != null; line = out.readLine()) {
                printed.append(line).append('\n');
                if (line.contains("Running warmup...")) {
                    for (String file : files) {
                        truncate(file);
                    }
                }
            }
            assertTrue(process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS), "does not end");
        } finally {
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly();
        }
        try (Stream<Path> left = Files.list(folder)) {
            List<Path> crashes =
                    left.filter(file -> file.getFileName().toString().startsWith("hs_err"))
                            .toList();
            assertEquals(List.of(), crashes);
        }
        return process.exitValue();
    }

    private String errors() throws IOException {
        return Files.readString(folder.resolve("stderr"));
    }

    @Test
    void aRunWithThreadsHasItsOwnCopy() throws Exception {
        matrix("a.npy", 2048, 512);
        matrix("b.npy", 512, 64);
        int code = runAndTruncate("--a a.npy --b b.npy", "a.npy", "b.npy");
        assertEquals(0, code, errors());
        assertTrue(printed.toString().contains("Verification PASSED"), printed.toString());
    }

    @Test
    void soHasARunOnGeneratedData() throws Exception {
        int code =
                runAndTruncate(
                        "--gm 2048 --gk 512 --gn 64",
                        "out/pe_0_a.bin",
                        "out/pe_1_a.bin",
                        "out/pe_0_b.bin");
        assertEquals(0, code, errors());
        assertTrue(printed.toString().contains("Verification PASSED"), printed.toString());
    }

    /** Its ranks may or may not have read the file by then. */
    @Test
    void aRunWithProcessesEndsInOrder() throws Exception {
        matrix("a.npy", 2048, 512);
        matrix("b.npy", 512, 64);
        int code = runAndTruncate("--launcher processes --a a.npy --b b.npy", "a.npy");
        List<String> told = errors().lines().filter(line -> line.startsWith("weft: ")).toList();
        if (code != 0) {
            assertEquals(ExitCode.FAILED, code, errors());
            assertEquals(1, told.size(), errors());
            assertTrue(told.getFirst().contains("a.npy: "), errors());
        }
    }
}
