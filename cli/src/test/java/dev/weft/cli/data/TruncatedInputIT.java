package dev.weft.cli.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.ChildProcess;
import dev.weft.cli.console.ExitCode;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.MatrixFiles;
import dev.weft.tensor.data.NormalData;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whoever shortens a run's inputs meanwhile does not bring its JVM down. */
class TruncatedInputIT {

    @TempDir private Path folder;

    private final StringBuilder printed = new StringBuilder();
    private ChildProcess run;

    @AfterEach
    void end() {
        run.close();
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
        run =
                ChildProcess.weft(
                                folder,
                                "run -n 2 --engine scalar --algorithm ring --warmup 1 --iterations 3"
                                        + " --data-dir out "
                                        + arguments)
                        .inFolder()
                        .to(ProcessBuilder.Redirect.PIPE)
                        .start();
        try (BufferedReader out = run.process().inputReader()) {
            for (String line = out.readLine(); line != null; line = out.readLine()) {
                printed.append(line).append('\n');
                if (line.contains("Running warmup...")) {
                    for (String file : files) {
                        truncate(file);
                    }
                }
            }
        }
        int code = run.code();
        try (Stream<Path> left = Files.list(folder)) {
            List<Path> crashes =
                    left.filter(file -> file.getFileName().toString().startsWith("hs_err"))
                            .toList();
            assertEquals(List.of(), crashes);
        }
        return code;
    }

    @Test
    void aRunWithThreadsHasItsOwnCopy() throws Exception {
        matrix("a.npy", 512, 64);
        matrix("b.npy", 64, 8);
        int code = runAndTruncate("--a a.npy --b b.npy", "a.npy", "b.npy");
        assertEquals(0, code, run::toString);
        assertTrue(printed.toString().contains("Verification PASSED"), printed.toString());
    }

    @Test
    void soHasARunOnGeneratedData() throws Exception {
        int code =
                runAndTruncate(
                        "--gm 512 --gk 64 --gn 8",
                        "out/pe_0_a.bin",
                        "out/pe_1_a.bin",
                        "out/pe_0_b.bin");
        assertEquals(0, code, run::toString);
        assertTrue(printed.toString().contains("Verification PASSED"), printed.toString());
    }

    /** Its ranks may or may not have read the file by then. */
    @Test
    void aRunWithProcessesEndsInOrder() throws Exception {
        matrix("a.npy", 512, 64);
        matrix("b.npy", 64, 8);
        int code = runAndTruncate("--launcher processes --a a.npy --b b.npy", "a.npy");
        if (code != 0) {
            assertEquals(ExitCode.FAILED, code, run::toString);
            assertTrue(run.complaint().contains("a.npy: "), run::toString);
        }
    }
}
