package dev.weft.cli.launch;

import dev.weft.files.Folders;
import java.io.IOException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Files that Open MPI leaves on this host when its mpirun or ranks are killed: a segment of shared
 * memory for each rank, and the folder of the job's daemon. Only files of this mpirun, and of jobs
 * whose ranks have reported their number, are touched, and only once they are gone.
 */
final class OpenMpiFiles {

    private static final Path SHARED = Path.of("/dev/shm");

    private OpenMpiFiles() {}

    static void remove(List<RankStart> ranks, long mpirun) throws IOException {
        if (ranks.stream().flatMap(rank -> rank.process().stream()).anyMatch(ProcessStates::runs)) {
            return;
        }
        for (String job : ranks.stream().map(RankStart::job).distinct().toList()) {
            removeSegments(job);
        }
        for (Path folder : sessions(ranks, "pid." + mpirun)) {
            if (Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)) {
                Folders.delete(folder);
                removeIfEmpty(folder.getParent());
            }
        }
    }

    /** As ranks have reported them, and those in the usual place, where none could report. */
    private static Set<Path> sessions(List<RankStart> ranks, String name) throws IOException {
        Set<Path> sessions = new LinkedHashSet<>();
        ranks.forEach(rank -> sessions.add(Path.of(rank.session())));
        Path usual = Path.of(System.getenv().getOrDefault("TMPDIR", "/tmp"));
        if (Files.isDirectory(usual)) {
            try (DirectoryStream<Path> users = Files.newDirectoryStream(usual, "ompi.*")) {
                users.forEach(user -> sessions.add(user.resolve(name)));
            }
        }
        sessions.removeIf(session -> !session.endsWith(name));
        return sessions;
    }

    /** All jobs of a user share the folder; Open MPI's last one would remove it. */
    private static void removeIfEmpty(Path folder) throws IOException {
        try {
            if (folder.getFileName().toString().startsWith("ompi.")) {
                Files.deleteIfExists(folder);
            }
        } catch (DirectoryNotEmptyException e) {
            System.getLogger("dev.weft").log(System.Logger.Level.TRACE, "{0} is in use", folder);
        }
    }

    /** Named {@code vader_segment} (4) or {@code sm_segment} (5), host, user, job, rank. */
    private static void removeSegments(String job) throws IOException {
        if (!job.matches("[0-9]{1,10}") || !Files.isDirectory(SHARED)) {
            return;
        }
        String number = Long.toHexString(Long.parseLong(job));
        try (Stream<Path> files = Files.list(SHARED)) {
            for (Path file : files.toList()) {
                String name = file.getFileName().toString();
                if (name.matches("(vader|sm)_segment\\..+\\.[0-9]+\\." + number + "\\.[0-9a-f]+")
                        && Files.isWritable(file)) {
                    Files.deleteIfExists(file);
                }
            }
        }
    }
}
