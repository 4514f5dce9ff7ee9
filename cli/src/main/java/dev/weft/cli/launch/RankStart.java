package dev.weft.cli.launch;

import dev.weft.process.PidNamespace;
import java.util.Optional;

/**
 * What a rank under mpirun tells the command about itself when it starts.
 *
 * @param system identifies the kernel and its process numbers, so that {@code pid} is not looked up
 *     elsewhere
 * @param job Open MPI's number of the job, or empty
 * @param session the folder of that job's daemons, or empty
 */
public record RankStart(long pid, String system, String job, String session) {

    /** The start of this process. */
    public static RankStart current() {
        return new RankStart(
                ProcessHandle.current().pid(),
                currentSystem(),
                environment("PMIX_NAMESPACE"),
                environment("OMPI_MCA_orte_jobfam_session_dir"));
    }

    /** Hosts of a lab have their own names on one kernel. */
    private static String currentSystem() {
        String space = PidNamespace.current();
        return space.isEmpty() ? "" : space + PidNamespace.host();
    }

    private static String environment(String name) {
        return System.getenv().getOrDefault(name, "");
    }

    /** The rank's process, if it runs on this system. */
    Optional<ProcessHandle> process() {
        return !system.isEmpty() && system.equals(currentSystem())
                ? ProcessHandle.of(pid)
                : Optional.empty();
    }
}
