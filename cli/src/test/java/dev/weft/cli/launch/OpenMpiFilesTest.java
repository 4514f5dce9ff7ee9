package dev.weft.cli.launch;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a killed mpirun leaves in the folder for temporary files. */
class OpenMpiFilesTest {

    @TempDir Path folder;

    @Test
    void theFolderOfAllJobsGoesWithTheLastOne() throws Exception {
        Path user = folder.resolve("ompi.host.1000");
        Path session = Files.createDirectories(user.resolve("pid.7/1/0"));
        Path other = Files.createDirectories(user.resolve("pid.8"));
        OpenMpiFiles.remove(List.of(rank(session.getParent().getParent())), 7);
        assertFalse(Files.exists(user.resolve("pid.7")));
        assertTrue(Files.exists(other), "another job's");
        OpenMpiFiles.remove(List.of(rank(other)), 8);
        assertFalse(Files.exists(user));
        assertTrue(Files.exists(folder));
    }

    private static RankStart rank(Path session) {
        return new RankStart(1L << 40, "elsewhere", "", session.toString());
    }
}
