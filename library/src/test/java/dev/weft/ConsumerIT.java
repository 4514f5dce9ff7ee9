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
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/**
 * Another project imports the BOM of a release, requires Weft's module, compiles offline and runs.
 * What Maven caches for it is below target, and borrowed from the user but for Weft itself.
 */
@Execution(ExecutionMode.CONCURRENT)
class ConsumerIT {

    private static final String VERSION = System.getProperty("weft.version");
    private static final Path LIBRARY = Path.of("").toAbsolutePath();
    private static final Path CLONE = LIBRARY.getParent();
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
    void aModuleOfAnotherProjectCompilesAndRunsAgainstARelease() throws Exception {
        Optional<Path> maven = onPath("mvn");
        assumeTrue(maven.isPresent(), "mvn is not on the PATH");
        Path release = release(maven.get());
        assertEquals(
                List.of("-cyclonedx.json", "-sources.jar", ".jar", ".pom"),
                released(release, "weft"));
        assertEquals(List.of("-cyclonedx.json", ".pom"), released(release, "weft-bom"));
        assertEquals(List.of("-cyclonedx.json", ".pom"), released(release, "weft-parent"));

        Path cache = folder.resolve("cache");
        borrowAllButWeft(cache);
        Path project = copy(LIBRARY.resolve("src/test/consumer"), folder.resolve("project"));
        run(
                project,
                List.of(
                        maven.get().toString(),
                        "-q",
                        "-B",
                        "-o",
                        // A folder is reached offline too.
                        "-Daether.offline.protocols=file",
                        "-Dmaven.repo.local=" + cache,
                        "-Dweft.repository=" + release.toUri(),
                        "-Dweft.version=" + VERSION,
                        "compile"));
        Path jar = cache.resolve("dev/weft/weft/" + VERSION + "/weft-" + VERSION + ".jar");
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

    /** {@code weft install}, in a clone whose library is one class. */
    @Test
    void theLauncherInstallsTheLibraryWithSourcesAndJavadoc() throws Exception {
        assumeTrue(onPath("mvn").isPresent(), "mvn is not on the PATH");
        Path clone = cloneOfPoms();
        Files.copy(CLONE.resolve("weft"), clone.resolve("weft"));
        copy(CLONE.resolve("scripts"), clone.resolve("scripts"));
        Path sources = Files.createDirectories(clone.resolve("library/src/main/java/dev/weft"));
        Files.writeString(
                sources.resolve("One.java"), "package dev.weft; /** One. */ public class One {}");
        Path cache = folder.resolve("cache");
        borrowAllButWeft(cache);
        String said =
                run(
                        clone,
                        List.of(
                                clone.resolve("weft").toString(),
                                "install",
                                "-Dmaven.repo.local=" + cache));
        assertEquals(
                "installed dev.weft:weft:%s, with sources and Javadoc, in the local Maven repository\n"
                        .formatted(VERSION),
                said);
        assertEquals(
                List.of("-javadoc.jar", "-sources.jar", ".jar", ".pom"), released(cache, "weft"));
        assertEquals(List.of(".pom"), released(cache, "weft-bom"));
        assertEquals(List.of(".pom"), released(cache, "weft-parent"));
    }

    /** Deploys BOM and library out of a copy of the clone, with the classes that are compiled. */
    private Path release(Path maven) throws Exception {
        Path copy = cloneOfPoms();
        copy(LIBRARY.resolve("src/main"), copy.resolve("library/src/main"));
        copy(LIBRARY.resolve("target/classes"), copy.resolve("library/target/classes"));
        run(
                copy,
                List.of(
                        maven.toString(),
                        "-q",
                        "-B",
                        "-Prelease",
                        "-Dweft.quick",
                        "-Dmaven.main.skip",
                        "-Dmaven.test.skip",
                        // The build that runs this test makes them.
                        "-Dmaven.javadoc.skip",
                        "-Dmaven.repo.local=" + USER_REPOSITORY,
                        "-pl",
                        ".,bom,library",
                        "deploy"));
        return copy.resolve("build/repository");
    }

    private Path cloneOfPoms() throws IOException {
        Path copy = Files.createDirectory(folder.resolve("clone"));
        for (String module :
                List.of("", "bom", "library", "cli", "compat", "bench", "bench/jmh", "stress")) {
            Files.createDirectories(copy.resolve(module));
            Files.copy(
                    CLONE.resolve(module).resolve("pom.xml"),
                    copy.resolve(module).resolve("pom.xml"));
        }
        return copy;
    }

    /** How the names of an artifact's files end, but for checksums. */
    private static List<String> released(Path repository, String artifact) throws IOException {
        String start = artifact + "-" + VERSION;
        try (Stream<Path> files =
                Files.list(repository.resolve("dev/weft").resolve(artifact).resolve(VERSION))) {
            return files.map(file -> file.getFileName().toString())
                    .filter(name -> !name.matches(".*\\.(md5|sha1|repositories)"))
                    .map(name -> name.substring(start.length()))
                    .sorted()
                    .toList();
        }
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

    private static Path jacksonJar() throws URISyntaxException {
        return Path.of(
                JsonFactory.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    private static Path copy(Path source, Path target) throws IOException {
        Files.createDirectories(target.getParent());
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
