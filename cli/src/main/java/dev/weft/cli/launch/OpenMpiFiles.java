package dev.weft.cli.launch;

import dev.weft.files.Folders;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * Files that Open MPI leaves on this host when its mpirun or ranks are killed: a segment of shared
 * memory for each rank, and the folder of the job's daemon. Only files of jobs whose ranks have
 * reported their number are touched, and only once they are gone.
 */
final class OpenMpiFiles {

    private static final Path SHARED = Path.of("/dev/shm");

    private OpenMpiFiles() {}

    static void remove(List<RankStart> ranks, long mpirun) throws IOException {
        if (ranks.isEmpty() || ranks.stream().anyMatch(rank -> rank.process().isPresent())) {
            return;
        }
        for (String job : ranks.stream().map(RankStart::job).distinct().toList()) {
            removeSegments(job);
        }
        for (String session : ranks.stream().map(RankStart::session).distinct().toList()) {
            Path folder = Path.of(session);
            if (folder.endsWith("pid." + mpirun)
                    && Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)) {
                Folders.delete(folder);
            }
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
