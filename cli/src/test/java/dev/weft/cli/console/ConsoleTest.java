package dev.weft.cli.console;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.Invocation;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ConsoleTest {

    /** Sets the terminal's title, clears the screen, turns the text around. */
    private static final String EVIL = "e\u001b]0;x\u0007\u001b[2Jv\u009b1m\u202eil\u2066";

    private static final String TAMED = "e?]0;x??[2Jv?1m?il?";

    private static final Pattern HARMFUL =
            Pattern.compile("[\\p{Cc}&&[^\\n]]|[\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]");

    @TempDir Path folder;

    @Test
    void linesCannotCommandATerminal() {
        StringWriter text = new StringWriter();
        Console console = new Console(new PrintWriter(text), false);
        console.info("in " + EVIL + "\n[INFO] forged\r");
        console.print("\u2028" + EVIL);
        console.draw("\u001b[31mours\u001b[0m");
        assertEquals(
                List.of(
                        "[INFO] in " + TAMED + "?[INFO] forged?",
                        "?" + TAMED,
                        "\u001b[31mours\u001b[0m"),
                text.toString().lines().toList());
    }

    @Test
    void namesOfFilesAndTextsOfRecordsAreShownHarmless() throws IOException {
        Path evil = Files.createDirectory(folder.resolve(EVIL));
        String problem = "--gm 8 --gk 8 --gn 8 --data-dir " + evil.resolve("out");
        shown("gen-data " + problem);
        shown("gen-data " + problem);
        shown(
                "run --warmup 0 --iterations 1 --json "
                        + evil.resolve("r.json")
                        + " --report "
                        + evil.resolve("r.html")
                        + " --trace "
                        + evil.resolve("t.json")
                        + " "
                        + problem);
        shown("report " + evil.resolve("r.json"));
        Invocation refused = Invocation.of("report", evil.resolve("none.json").toString());
        assertEquals(ExitCode.USAGE, refused.code());
        assertFalse(HARMFUL.matcher(refused.err()).find(), refused.err());
    }

    private static void shown(String command) {
        Invocation run = Invocation.ofWords(command);
        assertEquals(0, run.code(), run.err());
        assertTrue(run.out().contains(TAMED), run.out());
        assertFalse(HARMFUL.matcher(run.out()).find(), run.out());
    }
}
