package dev.weft.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.fabric.ChildJvm;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Real ranks under a real launcher, one start per family; the checks are in {@link MpiChild}. */
class MpiIT {

    private static final int RANKS = 3;
    private static final int CHECKS = 14;
    private static final int PATIENCE_SECONDS = 120;

    @TempDir private Path folder;

    @Test
    void openMpiDoesAllThatWeftAsksOfIt() throws Exception {
        String launcher = launcher("Open MPI", List.of("mpirun.openmpi", "mpirun"), "Open MPI");
        List<String> options =
                List.of("--allow-run-as-root", "--oversubscribe", "--bind-to", "none");
        runChecks(launcher, options, "library: Open MPI v");
    }

    @Test
    void mpichDoesAllThatWeftAsksOfIt() throws Exception {
        String launcher =
                launcher("MPICH", List.of("mpirun.mpich", "mpiexec.hydra", "mpirun"), "HYDRA");
        runChecks(launcher, List.of(), "library: MPICH Version: ");
    }

    private void runChecks(String launcher, List<String> options, String library) throws Exception {
        List<String> command = new ArrayList<>(List.of(launcher));
        command.addAll(options);
        command.addAll(List.of("-n", String.valueOf(RANKS)));
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        // Compiled at once, so that null checks are the processor's before null comes.
        command.addAll(List.of("-Xbatch", "-Xmx128m", "--enable-native-access=ALL-UNNAMED"));
        String classPath =
                ChildJvm.rootOf(MpiChild.class) + File.pathSeparator + ChildJvm.rootOf(Mpi.class);
        command.addAll(List.of("-cp", classPath, MpiChild.class.getName()));
        Output output = run(command);
        Optional<String> missing =
                output.lines.stream().filter(line -> line.startsWith("unavailable: ")).findFirst();
        assumeTrue(missing.isEmpty(), missing::toString);
        assertEquals(0, output.exitCode, () -> String.join("\n", output.lines));
        assertEquals(1, output.linesWith(library), () -> String.join("\n", output.lines));
        assertEquals(
                RANKS * CHECKS,
                output.linesWith(" passed "),
                () -> String.join("\n", output.lines));
    }

    /** The first program on the path that introduces itself as the family's launcher. */
    private String launcher(String family, List<String> names, String introduction)
            throws Exception {
        for (String name : names) {
            for (String bin : System.getenv("PATH").split(File.pathSeparator)) {
                Path program = Path.of(bin, name);
                if (Files.isExecutable(program)
                        && run(List.of(program.toString(), "--version")).linesWith(introduction)
                                > 0) {
                    return program.toString();
                }
            }
        }
        assumeTrue(false, "no mpirun of " + family + " on the path");
        throw new AssertionError("unreachable");
    }

    private record Output(int exitCode, List<String> lines) {

        long linesWith(String text) {
            return lines.stream().filter(line -> line.contains(text)).count();
        }
    }

    private Output run(List<String> command) throws IOException, InterruptedException {
        Path file = Files.createTempFile(folder, "output", ".txt");
        ProcessBuilder builder =
                new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(file.toFile());
        builder.environment().remove(MpiLibrary.VARIABLE);
        Process process = builder.start();
        process.getOutputStream().close();
        if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly().waitFor();
            throw new AssertionError(command + " hung: " + Files.readString(file));
        }
        return new Output(process.exitValue(), Files.readAllLines(file));
    }
}
