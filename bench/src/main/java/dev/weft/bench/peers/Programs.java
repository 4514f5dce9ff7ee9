package dev.weft.bench.peers;

import dev.weft.files.AtomicFile;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Programs of this machine that are run once and then looked at, and the sources of peers in other
 * languages. Any thread may call it.
 */
public final class Programs {

    private static final Duration DEADLINE = Duration.ofSeconds(60);

    private Programs() {}

    /** The program of that name on the PATH. */
    public static Optional<Path> onPath(String name) {
        String path = Optional.ofNullable(System.getenv("PATH")).orElse("");
        return Stream.of(path.split(File.pathSeparator))
                .filter(folder -> !folder.isEmpty())
                .map(folder -> Path.of(folder).resolve(name))
                .filter(Files::isExecutable)
                .findFirst();
    }

    /** Runs a program in a folder; one that does not end within a minute has failed. */
    public static ChildCommand.Output run(Path folder, String... command)
            throws IOException, InterruptedException {
        return new ChildCommand(List.of(command), folder).attempt(DEADLINE);
    }

    /** The last line with letters in it: tools like to end with rulers and blank lines. */
    public static Optional<String> lastLine(String text) {
        return text.lines()
                .map(String::strip)
                .filter(line -> line.chars().anyMatch(Character::isLetter))
                .reduce((before, last) -> last);
    }

    /** Puts the source of a peer, which comes along with these classes, into a folder. */
    public static Path source(String name, Path folder) throws IOException {
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
