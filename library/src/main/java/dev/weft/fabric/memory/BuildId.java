package dev.weft.fabric.memory;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.module.ModuleDescriptor;
import java.net.URI;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * A number that identifies a build of the library, computed from the names and checksums of its
 * classes. It is the same for classes in a jar and in a folder. It guards against accidents, not
 * against forgery. Thread-safe.
 */
public final class BuildId {

    private static final String CLASSES = "dev/weft/";

    private static final long SEED = 0xcbf2_9ce4_8422_2325L;
    private static final long PRIME = 0x100_0000_01b3L;

    private static Long current;

    private BuildId() {}

    /** The id of the library that runs. */
    public static synchronized long current() {
        if (current == null) {
            current = of(BuildId.class.getProtectionDomain().getCodeSource());
        }
        return current;
    }

    private static long of(CodeSource source) {
        URL origin = source == null ? null : source.getLocation();
        try {
            return origin != null && origin.getProtocol().equals("file")
                    ? of(Path.of(URI.create(origin.toString())))
                    : ofVersion();
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read Weft's own classes in " + origin, e);
        }
    }

    /** The id of the classes in a jar or a folder. */
    static long of(Path origin) throws IOException {
        Map<String, Long> checksums = new TreeMap<>();
        if (Files.isDirectory(origin)) {
            addFolder(origin, checksums);
        } else {
            addJar(origin, checksums);
        }
        long digest = SEED;
        for (Map.Entry<String, Long> entry : checksums.entrySet()) {
            digest = digest(digest, entry.getKey());
            digest = (digest ^ entry.getValue()) * PRIME;
        }
        return digest;
    }

    private static void addJar(Path jar, Map<String, Long> checksums) throws IOException {
        try (ZipFile zip = new ZipFile(jar.toFile())) {
            for (ZipEntry entry : Collections.list(zip.entries())) {
                if (isOwnClass(entry.getName())) {
                    checksums.put(entry.getName(), entry.getCrc());
                }
            }
        }
    }

    private static void addFolder(Path folder, Map<String, Long> checksums) throws IOException {
        List<Path> files;
        try (Stream<Path> all = Files.walk(folder)) {
            files = all.toList();
        }
        for (Path file : files) {
            String name = folder.relativize(file).toString().replace('\\', '/');
            if (isOwnClass(name)) {
                CRC32 checksum = new CRC32();
                checksum.update(Files.readAllBytes(file));
                checksums.put(name, checksum.getValue());
            }
        }
    }

    /** Leaves out the module descriptor, which tools that build a jar may change. */
    private static boolean isOwnClass(String name) {
        return name.startsWith(CLASSES) && name.endsWith(".class");
    }

    /** The id if the classes cannot be read, as in a runtime image. */
    private static long ofVersion() {
        ModuleDescriptor module = BuildId.class.getModule().getDescriptor();
        String version =
                module == null
                        ? BuildId.class.getPackage().getImplementationVersion()
                        : module.rawVersion().orElse(null);
        return digest("version " + version);
    }

    /** A 64-bit hash of a text. */
    public static long digest(String text) {
        return digest(SEED, text);
    }

    /** FNV-1a, which needs no security provider at the start of every rank. */
    private static long digest(long digest, String text) {
        for (int i = 0; i < text.length(); i++) {
            digest = (digest ^ text.charAt(i)) * PRIME;
        }
        return digest;
    }

    /** The id as messages show it. */
    public static String text(long id) {
        return HexFormat.of().toHexDigits(id);
    }
}
