package dev.weft.stress;

import dev.weft.bench.peers.Mpi;
import dev.weft.files.Folders;
import java.io.IOException;
import java.io.UncheckedIOException;
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

    /** Of those that take themselves for hosts. */
    static final int RANKS_PER_HOST = 2;

    private static final Optional<String> MPIRUN = find();

    private MpirunRanks() {}

    /** Why there are none here, or empty. */
    static Optional<String> unavailable() {
        return MPIRUN.isPresent()
                ? Optional.empty()
                : Optional.of("no mpirun of Open MPI is on the path");
    }

    static Ending run(Case run) {
        String start = "env -u WEFT_MPI_LIBRARY %s -n %d --oversubscribe --bind-to none";
        List<String> command =
                new ArrayList<>(
                        List.of(start.formatted(MPIRUN.orElseThrow(), run.ranks()).split(" ")));
        command.add("--enable-recovery");
        if ("root".equals(System.getProperty("user.name"))) {
            command.add("--allow-run-as-root");
        }
        command.addAll(RankMain.command(run));
        try {
            Path shared = Files.createTempDirectory("weft-case");
            try (RankProcesses processes = new RankProcesses(run)) {
                ProcessBuilder builder = new ProcessBuilder(command);
                builder.environment().put("WEFT_SHM_DIR", shared.toString());
                RankProcesses.Output mpirun = new RankProcesses.Output(builder);
                for (int rank = 0; rank < run.ranks(); rank++) {
                    processes.add(rank, mpirun);
                }
                Ending ending = processes.await();
                return ending.withLeft(mayStay(run) ? List.of() : left(shared));
            } finally {
                Folders.delete(shared);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("cannot run mpirun: " + e.getMessage(), e);
        }
    }

    private static List<String> left(Path shared) {
        return CommandRun.list(shared).stream().map(file -> file + " is still there").toList();
    }

    /**
     * Whether nobody is left on a host who could remove its folder: its first rank does, or those
     * who outlive it. The next start then does.
     */
    private static boolean mayStay(Case run) {
        int perHost = run.launcher() == Case.Launcher.HOSTS ? RANKS_PER_HOST : run.ranks();
        boolean first = run.fault().rank() % perHost == 0;
        boolean alone = first && run.fault().rank() == run.ranks() - 1;
        return run.fault().type() == Fault.Type.FREEZE && first
                || run.fault().type() == Fault.Type.KILL && alone;
    }

    private static Optional<String> find() {
        try {
            Path folder = Files.createTempDirectory("weft-mpirun");
            try {
                return Mpi.startAnyway(Mpi.Implementation.OPEN_MPI, folder).map(List::getFirst);
            } finally {
                Folders.delete(folder);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("cannot look for mpirun: " + e.getMessage(), e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Optional.empty();
        }
    }
}
