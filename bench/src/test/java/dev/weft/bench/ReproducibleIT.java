package dev.weft.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The launcher's build and the one that runs this test make the same jars of the same sources. */
class ReproducibleIT {

    private static final Path CLONE = Path.of("").toAbsolutePath().getParent();
    private static final Path BUILD = CLONE.resolve("build");

    @Test
    void twoBuildsMakeTheSameJars() throws IOException {
        assumeTrue(
                Files.isRegularFile(BUILD.resolve("current")) && isNewerThanSources("stamp"),
                "the launcher has not built these sources: run ./weft --version first");
        Path launchers = BUILD.resolve(Files.readString(BUILD.resolve("current")).strip());
        List<String> different = new ArrayList<>();
        int compared = 0;
        for (String module : List.of("library", "cli", "compat", "bench")) {
            try (Stream<Path> files = Files.list(CLONE.resolve(module).resolve("target"))) {
                for (Path jar : files.filter(ReproducibleIT::isOfClasses).toList()) {
                    Path folder = module.equals("cli") ? launchers : launchers.resolve("lib");
                    if (Files.mismatch(jar, folder.resolve(jar.getFileName())) >= 0) {
                        different.add(jar.toString());
                    }
                    compared++;
                }
            }
        }
        assertEquals(4, compared);
        assertEquals(List.of(), different);
    }

    private static boolean isOfClasses(Path file) {
        return file.getFileName().toString().matches("weft(-[a-z]+)?-[0-9.]+\\.jar");
    }

    private static boolean isNewerThanSources(String name) throws IOException {
        FileTime built = Files.getLastModifiedTime(BUILD.resolve(name));
        for (String module : List.of("library", "cli", "compat", "bench")) {
            try (Stream<Path> sources = Files.walk(CLONE.resolve(module).resolve("src/main"))) {
                for (Path source : sources.toList()) {
                    if (Files.getLastModifiedTime(source).compareTo(built) > 0) {
                        return false;
                    }
                }
            }
        }
        return true;
    }
}
