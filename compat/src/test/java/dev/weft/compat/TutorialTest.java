package dev.weft.compat;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The code of docs/tutorial-ring.md is that of its example, which ExamplesIT compiles and runs. */
class TutorialTest {

    @Test
    void theRingsCodeIsThatOfItsExample() throws IOException {
        String page = Files.readString(Path.of("..", "docs", "tutorial-ring.md"));
        String program = Files.readString(Path.of("..", "examples", "ring", "RingTutorial.java"));
        Matcher code = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(page);
        int parts = 0;
        while (code.find()) {
            String part = code.group(1);
            assertTrue(program.contains(part), () -> "not in the example:\n" + part);
            parts++;
        }
        assertTrue(parts >= 5, parts + " parts");
        assertTrue(
                Files.readString(Path.of("..", "docs", "images", "ring-timeline.svg"))
                        .contains("rank 3 matmul"));
    }
}
