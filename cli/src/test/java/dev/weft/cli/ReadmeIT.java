package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
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
        ChildProcess process =
                ChildProcess.java(folder, source.toString(), List.of()).wellCompiled().run();
        assertEquals(0, process.code(), process::toString);
        List<String> printed = process.out().lines().toList();
        assertEquals(4, printed.size(), "a line per rank");
        assertEquals(1, printed.stream().distinct().count(), "the same value on every rank");
    }
}
