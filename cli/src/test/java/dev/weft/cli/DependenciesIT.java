package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** What {@code docs/dependencies.md} says is shipped is what is shipped, byte for byte. */
class DependenciesIT {

    private static final Path CLONE = Path.of("").toAbsolutePath().getParent();
    private static final String CHARTS = "echarts.min.js";
    private static final Pattern SHIPPED =
            Pattern.compile("\\| (\\S+) \\| pkg:\\S+@(\\S+) \\| .* \\| ([0-9a-f]{64}) \\|");
    private static final Pattern VERSION =
            Pattern.compile("<(\\w+)\\.version>([^<$]+)</\\w+\\.version>");

    private static String list() throws IOException {
        return Files.readString(CLONE.resolve("docs/dependencies.md"));
    }

    private static String digest(byte[] bytes) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    }

    @Test
    void whatIsShippedIsListedAndUnchanged() throws Exception {
        Path lib = CLONE.resolve("cli/target/lib");
        assumeTrue(Files.isDirectory(lib), "the jars are not built");
        Map<String, String> shipped = new TreeMap<>();
        try (Stream<Path> jars = Files.list(lib)) {
            for (Path jar : jars.toList()) {
                String name = jar.getFileName().toString();
                // Weft's own changes with every commit.
                if (!name.matches("weft-[0-9.]+\\.jar")) {
                    shipped.put(name, digest(Files.readAllBytes(jar)));
                }
            }
        }
        try (InputStream charts =
                Main.class.getResourceAsStream("/dev/weft/report/page/" + CHARTS)) {
            shipped.put(CHARTS, digest(charts.readAllBytes()));
        }
        Map<String, String> listed = new TreeMap<>();
        Matcher rows = SHIPPED.matcher(list());
        while (rows.find()) {
            listed.put(rows.group(1), rows.group(3));
        }
        assertEquals(listed, shipped);
    }

    @Test
    void everyVersionOfTheBuildIsTold() throws IOException {
        String list = list();
        Matcher versions = VERSION.matcher(Files.readString(CLONE.resolve("pom.xml")));
        assertTrue(versions.find(), "the build has versions");
        do {
            String version = Pattern.quote(versions.group(2));
            assertTrue(
                    Pattern.compile("(?<![0-9.])" + version + "(?![0-9]|\\.[0-9])")
                            .matcher(list)
                            .find(),
                    versions.group());
        } while (versions.find());
    }
}
