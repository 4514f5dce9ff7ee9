package dev.weft.bench.peers;

import dev.weft.files.AtomicFile;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Programs of this machine that are run once and then looked at, and the sources of peers in other
 * languages. Any thread may call it.
 */
public final class Programs {

    private static final Duration DEADLINE = Duration.ofSeconds(60);

    /** What a program printed, to both of its outputs, and how it ended. */
    public record Output(int exitCode, String text) {

        public boolean ok() {
            return exitCode == 0;
        }

        /** The last line that says something. */
        public String lastLine() {
            return Programs.lastLine(text).orElse("exit code " + exitCode);
        }
    }

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

    /**
     * Runs a program to its end; one that does not end by the deadline is ended and has failed.
     *
     * @param folder for what it prints
     */
    public static Output run(Path folder, String... command)
            throws IOException, InterruptedException {
        Path printed = Files.createTempFile(folder, "tool", ".out");
        ProcessBuilder builder =
                new ProcessBuilder(List.of(command))
                        .redirectErrorStream(true)
                        .redirectInput(new File("/dev/null"))
                        .redirectOutput(printed.toFile());
        Process process = Children.start(builder);
        try {
            if (!process.waitFor(DEADLINE.toMillis(), TimeUnit.MILLISECONDS)) {
                return new Output(-1, command[0] + " took over " + DEADLINE.toSeconds() + " s");
            }
            String text = Files.readString(printed, StandardCharsets.ISO_8859_1);
            return new Output(process.exitValue(), text);
        } finally {
            Children.end(process);
        }
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
