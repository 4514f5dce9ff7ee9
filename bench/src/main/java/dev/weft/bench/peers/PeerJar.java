package dev.weft.bench.peers;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * A library that Maven can fetch, and that a bench compares Weft with if it has been fetched: the
 * bench itself downloads nothing. Any thread may call it.
 *
 * @param classifier may be empty
 */
record PeerJar(String group, String artifact, String version, String classifier) {

    /** Why it is not here and how to get it, or empty. */
    Optional<String> missing() {
        if (Files.isRegularFile(path())) {
            return Optional.empty();
        }
        String suffix = classifier.isEmpty() ? "" : ":jar:" + classifier;
        return Optional.of(
                "not in Maven's local repository; mvn dependency:get -Dtransitive=false -Dartifact=%s:%s:%s%s"
                        .formatted(group, artifact, version, suffix));
    }

    Path path() {
        String suffix = classifier.isEmpty() ? "" : "-" + classifier;
        return repository()
                .resolve(group.replace('.', '/'))
                .resolve(artifact)
                .resolve(version)
                .resolve(artifact + "-" + version + suffix + ".jar");
    }

    private static Path repository() {
        String set = System.getProperty("maven.repo.local");
        return set != null
                ? Path.of(set)
                : Path.of(System.getProperty("user.home"), ".m2", "repository");
    }

    /** Puts files of a folder inside the jar into a folder, where they stay for the next caller. */
    void unpack(String inside, List<String> names, Path folder) throws IOException {
        Files.createDirectories(folder);
        try (ZipFile jar = new ZipFile(path().toFile())) {
            for (String name : names) {
                Path target = folder.resolve(name);
                if (Files.exists(target)) {
                    continue;
                }
                ZipEntry entry = jar.getEntry(inside + "/" + name);
                if (entry == null) {
                    throw new IOException(path() + " has no " + inside + "/" + name);
                }
                try (InputStream in = jar.getInputStream(entry)) {
                    Files.copy(in, target);
                }
            }
        }
    }
}
