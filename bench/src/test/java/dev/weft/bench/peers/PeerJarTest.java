package dev.weft.bench.peers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PeerJarTest {

    private static final String REPOSITORY = "maven.repo.local";

    private static final PeerJar JAR = new PeerJar("org.some", "peer", "1.2", "linux");

    @TempDir Path folder;

    private String before;

    @BeforeEach
    void useTheFolder() {
        before = System.setProperty(REPOSITORY, folder.toString());
    }

    @AfterEach
    void useTheUsersOwn() {
        if (before == null) {
            System.clearProperty(REPOSITORY);
        } else {
            System.setProperty(REPOSITORY, before);
        }
    }

    private void write(String entry) throws IOException {
        Path file = folder.resolve("org/some/peer/1.2/peer-1.2-linux.jar");
        Files.createDirectories(file.getParent());
        try (ZipOutputStream jar = new ZipOutputStream(Files.newOutputStream(file))) {
            jar.putNextEntry(new ZipEntry(entry));
            jar.write(7);
            jar.closeEntry();
        }
    }

    @Test
    void theCommandThatFetchesAMissingOneIsTold() {
        assertEquals(
                Optional.of(
                        "not in Maven's local repository; mvn dependency:get -Dtransitive=false"
                                + " -Dartifact=org.some:peer:1.2:jar:linux"),
                JAR.missing());
    }

    @Test
    void filesInsideAreUnpackedOnce() throws IOException {
        write("some/lib.so");
        assertEquals(Optional.empty(), JAR.missing());
        Path to = folder.resolve("unpacked");
        JAR.unpack("some", List.of("lib.so"), to);
        JAR.unpack("some", List.of("lib.so"), to);
        assertEquals(1, Files.size(to.resolve("lib.so")));
    }

    @Test
    void aFileThatIsNotInsideIsNamed() throws IOException {
        write("some/lib.so");
        Path to = folder.resolve("unpacked");
        String message =
                assertThrows(IOException.class, () -> JAR.unpack("some", List.of("other.so"), to))
                        .getMessage();
        assertEquals(JAR.path() + " has no some/other.so", message);
    }
}
