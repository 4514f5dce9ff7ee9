package dev.weft.stress;

import dev.weft.files.Folders;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Runs a case with processes that mpirun starts. Open MPI's, which can let ranks live on when one
 * dies; MPICH's ends them all itself.
 */
final class MpirunRanks {

    private static final Optional<String> MPIRUN = find();

    private MpirunRanks() {}

    /** Why there are none here, or empty. */
    static Optional<String> unavailable() {
        return MPIRUN.isPresent()
                ? Optional.empty()
                : Optional.of("no mpirun of Open MPI is on the path");
    }

    static Ending run(Case run) {
        List<String> command =
                new ArrayList<>(
                        List.of(
                                "env",
                                "-u",
                                "WEFT_MPI_LIBRARY",
                                MPIRUN.orElseThrow(),
                                "-n",
                                "" + run.ranks(),
                                "--oversubscribe",
                                "--bind-to",
                                "none",
                                "--enable-recovery"));
        if ("root".equals(System.getProperty("user.name"))) {
            command.add("--allow-run-as-root");
        }
        command.addAll(ChildJava.command(run));
        try {
            Path shared = Files.createTempDirectory("weft-case");
            try (Witnesses witnesses = new Witnesses(run)) {
                ProcessBuilder builder = new ProcessBuilder(command);
                builder.environment().put("WEFT_SHM_DIR", shared.toString());
                Witness mpirun = new Witness(builder);
                for (int rank = 0; rank < run.ranks(); rank++) {
                    witnesses.add(rank, mpirun);
                }
                Ending ending = witnesses.await();
                return ending.withLeft(mayStay(run) ? List.of() : Leftovers.list(shared));
            } finally {
                Folders.delete(shared);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("cannot run mpirun: " + e.getMessage(), e);
        }
    }

    /**
     * Whether nobody is left on a host who could remove its folder: its first rank does, or those
     * who outlive it. The next start then does.
     */
    private static boolean mayStay(Case run) {
        int perHost =
                run.launcher() == Case.Launcher.HOSTS ? ChildJava.RANKS_PER_HOST : run.ranks();
        boolean first = run.fault().rank() % perHost == 0;
        boolean alone = first && run.fault().rank() == run.ranks() - 1;
        return run.fault().kind() == Fault.Kind.FREEZE && first
                || run.fault().kind() == Fault.Kind.KILL && alone;
    }

    private static Optional<String> find() {
        for (String name : List.of("mpirun.openmpi", "mpirun")) {
            for (String bin : System.getenv("PATH").split(File.pathSeparator)) {
                Path program = Path.of(bin, name);
                if (Files.isExecutable(program) && isOpenMpi(program)) {
                    return Optional.of(program.toString());
                }
            }
        }
        return Optional.empty();
    }

    private static boolean isOpenMpi(Path program) {
        try {
            Process process =
                    new ProcessBuilder(program.toString(), "--version")
                            .redirectErrorStream(true)
                            .start();
            return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                    .contains("Open MPI");
        } catch (IOException e) {
            return false;
        }
    }
}
