package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.fabric.memory.ShmJob;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** A place for shared memory that is one test's own, so that what commands leave there is seen. */
public record SharedMemory(Path folder) {

    public static final String VARIABLE = "WEFT_SHM_DIR";

    public static SharedMemory create() throws IOException {
        Path folder = Files.createTempDirectory(ShmJob.sharedMemory(), "weft-it-");
        folder.toFile().deleteOnExit();
        return new SharedMemory(folder);
    }

    public void assertEmpty() throws IOException {
        try (Stream<Path> left = Files.walk(folder)) {
            assertEquals(List.of(folder), left.toList(), "left in shared memory");
        }
    }

    /** Calls are under way once the first rank has told of its progress. */
    public boolean isMeasuring() {
        try (Stream<Path> files = Files.walk(folder)) {
            return files.anyMatch(file -> file.getFileName().toString().startsWith("progress-"));
        } catch (UncheckedIOException | IOException e) {
            return false; // a file was unlinked while we looked
        }
    }
}
