package dev.weft.cli;

import java.io.PrintWriter;
import java.io.StringWriter;
import picocli.CommandLine;

/** One command, run in this JVM: its exit code and what it printed. */
public record Invocation(int code, String out, String err) {

    public static Invocation of(String... arguments) {
        return on(Main.commandLine(), arguments);
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
}
