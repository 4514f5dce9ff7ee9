package dev.weft;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.core.JsonFactory;
import java.io.File;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Another project depends on the jar as a repository holds it, requires its module, and runs. The
 * repository is one of its own below target, which borrows all but Weft from the user's.
 */
class ConsumerIT {

    private static final String VERSION = System.getProperty("weft.version");
    private static final Path JAR = Path.of(System.getProperty("weft.jar"));
    private static final Path POM = Path.of("pom.xml").toAbsolutePath();
    private static final Path USER_REPOSITORY = Path.of(System.getProperty("localRepository"));

    @TempDir private Path folder;

    private final List<Path> links = new ArrayList<>();

    @AfterEach
    void giveBackWhatWasBorrowed() throws IOException {
        for (Path link : links) {
            Files.delete(link);
        }
    }

    @Test
    void aModuleOfAnotherProjectCompilesAndRunsAgainstTheInstalledJar() throws Exception {
        Optional<Path> maven = onPath("mvn");
        assumeTrue(maven.isPresent(), "mvn is not on the PATH");
        Path repository = folder.resolve("repository");
        borrowAllButWeft(repository);
        install(repository, "weft-parent", POM.resolveSibling("../pom.xml"), "pom");
        install(repository, "weft", POM, "pom");
        Path jar = install(repository, "weft", JAR, "jar");
        Path project = copyOf(POM.resolveSibling("src/test/consumer"));

        run(
                project,
                List.of(
                        maven.get().toString(),
                        "-q",
                        "-B",
                        "-o",
                        "-Dmaven.repo.local=" + repository,
                        "-Dweft.version=" + VERSION,
                        "compile"));
        String printed =
                run(
                        project,
                        List.of(
                                Path.of(System.getProperty("java.home"), "bin/java").toString(),
                                "--enable-native-access=dev.weft",
                                "-p",
                                Stream.of(project.resolve("target/classes"), jar, jacksonJar())
                                        .map(Path::toString)
                                        .reduce((a, b) -> a + File.pathSeparator + b)
                                        .orElseThrow(),
                                "-m",
                                "consumer/consumer.Main"));

        String product = "5.0 50.0 11.0 110.0 17.0 170.0";
        assertEquals(List.of(product, product), printed.lines().toList());
    }

    private static Optional<Path> onPath(String program) {
        return Stream.of(System.getenv("PATH").split(File.pathSeparator))
                .map(entry -> Path.of(entry, program))
                .filter(Files::isExecutable)
                .findFirst();
    }

    /**
     * Links to what is there, so that nothing is downloaded again and nothing of Weft lands there.
     */
    private void borrowAllButWeft(Path repository) throws IOException {
        Path ownDev = Files.createDirectories(repository.resolve("dev"));
        linkEntries(USER_REPOSITORY, repository, "dev");
        if (Files.isDirectory(USER_REPOSITORY.resolve("dev"))) {
            linkEntries(USER_REPOSITORY.resolve("dev"), ownDev, "weft");
        }
    }

    private void linkEntries(Path from, Path to, String except) throws IOException {
        try (Stream<Path> entries = Files.list(from)) {
            for (Path entry : entries.toList()) {
                if (!entry.getFileName().toString().equals(except)) {
                    links.add(Files.createSymbolicLink(to.resolve(entry.getFileName()), entry));
                }
            }
        }
    }

    private static Path install(Path repository, String artifact, Path file, String extension)
            throws IOException {
        Path place = repository.resolve("dev/weft").resolve(artifact).resolve(VERSION);
        Files.createDirectories(place);
        return Files.copy(file, place.resolve(artifact + "-" + VERSION + "." + extension));
    }

    private static Path jacksonJar() throws URISyntaxException {
        return Path.of(
                JsonFactory.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    private Path copyOf(Path source) throws IOException {
        Path target = folder.resolve("project");
        try (Stream<Path> files = Files.walk(source)) {
            for (Path file : files.toList()) {
                Files.copy(file, target.resolve(source.relativize(file).toString()));
            }
        }
        return target;
    }

    /** What the command printed; fails with its errors where it failed. */
    private static String run(Path project, List<String> command)
            throws IOException, InterruptedException {
        Path output = Files.createTempFile(project, "output", ".txt");
        Path errors = Files.createTempFile(project, "errors", ".txt");
        Process process =
                new ProcessBuilder(command)
                        .directory(project.toFile())
                        .redirectOutput(output.toFile())
                        .redirectError(errors.toFile())
                        .start();
        boolean ended = process.waitFor(5, TimeUnit.MINUTES);
        process.destroyForcibly();
        String all = Files.readString(output) + Files.readString(errors);
        assertTrue(ended, () -> command + " did not end: " + all);
        assertEquals(0, process.exitValue(), () -> command + " failed: " + all);
        return Files.readString(output);
    }
}
