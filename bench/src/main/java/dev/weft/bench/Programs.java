package dev.weft.bench;

import dev.weft.files.AtomicFile;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** The sources of peers in other languages, which come along with these classes. */
final class Programs {

    private Programs() {}

    /** Puts a source into a folder; where it lies there. */
    static Path copy(String name, Path folder) throws IOException {
        Path target = folder.resolve(name);
        if (Files.exists(target)) {
            return target;
        }
        try (InputStream source = Programs.class.getResourceAsStream(name)) {
            if (source == null) {
                throw new FileNotFoundException(name + " is not among Weft's classes");
            }
            AtomicFile.write(target, source.readAllBytes());
        }
        return target;
    }
}
