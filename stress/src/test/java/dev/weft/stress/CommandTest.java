package dev.weft.stress;

import java.io.PrintWriter;
import java.io.StringWriter;
import picocli.CommandLine;

/** Runs commands and keeps what they print. */
public abstract class CommandTest {

    protected final StringWriter out = new StringWriter();
    protected final StringWriter err = new StringWriter();

    /** The exit code. */
    protected final int run(CommandLine command, String... words) {
        return command.setOut(new PrintWriter(out)).setErr(new PrintWriter(err)).execute(words);
    }
}
