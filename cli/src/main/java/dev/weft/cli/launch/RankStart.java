package dev.weft.cli.launch;

import dev.weft.ffi.MpiEnvironment;
import dev.weft.files.PidNamespace;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/**
 * What a rank under mpirun tells the command about itself when it starts, in one line of its
 * standard error.
 *
 * @param system the kernel and its process numbers, so that {@code pid} is not looked for elsewhere
 * @param job Open MPI's number of the job, or empty
 * @param session the folder of that job's daemons, or empty
 */
public record RankStart(int rank, long pid, String system, String job, String session) {

    private static final String MARK = "weft-rank ";

    /** Of this process. */
    public static RankStart current() {
        return new RankStart(
                MpiEnvironment.current().rank().orElse(0),
                ProcessHandle.current().pid(),
                currentSystem(),
                environment("PMIX_NAMESPACE"),
                environment("OMPI_MCA_orte_jobfam_session_dir"));
    }

    /** A lab's hosts have their own names on one kernel. */
    private static String currentSystem() {
        String space = PidNamespace.current();
        return space.isEmpty() ? "" : space + PidNamespace.host();
    }

    private static String environment(String name) {
        return System.getenv().getOrDefault(name, "");
    }

    public String line() {
        return "%s%s %s %s %s %s"
                .formatted(MARK, rank, pid, encoded(system), encoded(job), encoded(session));
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    /** What {@link #line} gave, wherever in a line it stands. */
    static Optional<RankStart> of(String line) {
        // Not only at the beginning: launchers can be told to put the rank's number there.
        int mark = line.indexOf(MARK);
        String[] fields = mark < 0 ? new String[0] : line.substring(mark).split(" ", -1);
        if (fields.length != 6) {
            return Optional.empty();
        }
        try {
            return Optional.of(
                    new RankStart(
                            Integer.parseInt(fields[1]),
                            Long.parseLong(fields[2]),
                            decoded(fields[3]),
                            decoded(fields[4]),
                            decoded(fields[5])));
        } catch (IllegalArgumentException e) {
            // Somebody else's line, which people may want to see.
            return Optional.empty();
        }
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }

    /** The rank's process, where it is one of this system and still there. */
    Optional<ProcessHandle> process() {
        return !system.isEmpty() && system.equals(currentSystem())
                ? ProcessHandle.of(pid)
                : Optional.empty();
    }
}
