package dev.weft.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.cli.console.ExitCode;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import picocli.CommandLine;

/** One command, run in this JVM: its exit code and what it printed. */
public record Invocation(int code, String out, String err) {

    /** What a summary tells of every run. */
    public static final String[] VIEWS = {
        "Compute-only:",
        "Comm-only:",
        "Sequential:",
        "Pipelined:",
        "Speedup:",
        "Overlap eff:",
        "Of the limit:"
    };

    public static Invocation of(String... arguments) {
        return on(Main.commandLine(arguments), arguments);
    }

    /** Words, with a space between them. */
    public static Invocation ofWords(String words) {
        return of(words.strip().split(" "));
    }

    /** {@code run}, with few rounds and its files in a folder. */
    public static List<String> shortRun(String options, Path folder) {
        String words = "run " + options + " --warmup 1 --iterations 3 --data-dir";
        return Stream.concat(Stream.of(words.split(" ")), Stream.of(folder.toString())).toList();
    }

    /** By a parser that is there: to make one takes longer than most commands that are refused. */
    public static Invocation on(CommandLine parser, String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int code =
                Main.execute(
                        parser.setOut(new PrintWriter(out)).setErr(new PrintWriter(err)),
                        arguments);
        return new Invocation(code, out.toString(), err.toString());
    }

    /** Refused as wrong usage, in one line that says so and nothing else. */
    public void assertRefused(String expected) {
        assertEquals(ExitCode.USAGE, code, err);
        assertEquals(1, err.lines().count(), err);
        assertTrue(err.startsWith("weft: "), err);
        assertTrue(err.contains(expected), err);
        assertEquals("", out);
    }

    public void assertPrints(String... parts) {
        for (String part : parts) {
            assertTrue(out.contains(part), part + " in " + out);
        }
    }
}
