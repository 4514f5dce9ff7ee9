package dev.weft.stress;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** What is left in folders that were made for one case. */
final class Leftovers {

    private Leftovers() {}

    /** What lies in it, in words; a folder that is not there holds nothing. */
    static List<String> list(Path folder) {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file + " is still there").toList();
        } catch (IOException | UncheckedIOException e) {
            return List.of(folder + " cannot be read: " + e.getMessage());
        }
    }
}
