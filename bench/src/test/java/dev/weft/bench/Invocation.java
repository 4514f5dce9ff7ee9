package dev.weft.bench;

import dev.weft.cli.Main;
import java.io.PrintWriter;
import java.io.StringWriter;

/** One command, run in this JVM as {@link Main} finds it: its exit code and what it printed. */
record Invocation(int code, String out, String err) {

    static Invocation of(String... arguments) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int code =
                Main.execute(
                        Main.commandLine()
                                .setOut(new PrintWriter(out))
                                .setErr(new PrintWriter(err)),
                        arguments);
        return new Invocation(code, out.toString(), err.toString());
    }
}
