package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The README's example, taken out of the README, compiled and run. */
class ReadmeIT {

    @TempDir Path folder;

    @Test
    void theExampleCompilesRunsAndIsShort() throws Exception {
        String readme = Files.readString(Path.of("..", "README.md"));
        int start =
                readme.indexOf("```java", readme.indexOf("<!-- example")) + "```java\n".length();
        String example = readme.substring(start, readme.indexOf("```", start));
        long lines = example.substring(example.indexOf("void main()")).lines().count();
        assertTrue(lines <= 15, "the example has " + lines + " lines");
        Path source = Files.writeString(folder.resolve("Example.java"), example);
        Path output = folder.resolve("output");
        Process process =
                new ProcessBuilder(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "--add-modules",
                                "jdk.incubator.vector",
                                "--enable-native-access=ALL-UNNAMED",
                                "-cp",
                                System.getProperty("java.class.path"),
                                source.toString())
                        .redirectOutput(output.toFile())
                        .redirectError(folder.resolve("errors").toFile())
                        .start();
        assertTrue(process.waitFor(120, TimeUnit.SECONDS));
        assertEquals(0, process.exitValue(), Files.readString(folder.resolve("errors")));
        List<String> printed = Files.readAllLines(output);
        assertEquals(4, printed.size(), "a line per rank");
        assertEquals(1, printed.stream().distinct().count(), "the same value on every rank");
    }
}
