package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The reference names every variable and property that the sources read. */
class SettingsTest {

    private static final Path ROOT = Path.of("..");
    private static final Pattern SETTING =
            Pattern.compile("\"(WEFT_[A-Z_]+|weft(?:\\.[a-z]+)+)\"|\\$\\{?(WEFT_[A-Z_]+)");

    @Test
    void theReferenceNamesEverySetting() throws IOException {
        Set<String> read = new TreeSet<>();
        for (String module : new String[] {"library", "cli", "compat"}) {
            try (Stream<Path> sources = Files.walk(ROOT.resolve(module).resolve("src/main/java"))) {
                sources.filter(file -> file.toString().endsWith(".java"))
                        .forEach(file -> collect(file, read));
            }
        }
        collect(ROOT.resolve("weft"), read);
        assertTrue(read.size() > 25, read::toString);
        String reference = Files.readString(ROOT.resolve("docs/reference.md"));
        assertEquals(
                Set.of(),
                new TreeSet<>(
                        read.stream()
                                .filter(name -> !reference.contains("`" + name + "`"))
                                .toList()));
    }

    private static void collect(Path file, Set<String> found) {
        try {
            Matcher matcher = SETTING.matcher(Files.readString(file));
            while (matcher.find()) {
                found.add(matcher.group(1) == null ? matcher.group(2) : matcher.group(1));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
