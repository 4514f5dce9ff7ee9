package dev.weft.cli.console;

import java.io.PrintWriter;

/** The exit codes of the command, besides 0. */
public final class ExitCode {

    /** A valid run did not succeed. */
    public static final int FAILED = 1;

    /** Wrong usage, or something is missing. */
    public static final int USAGE = 2;

    private ExitCode() {}

    /** The exit code of a wrong result; prints it in one line, even with {@code --quiet}. */
    public static int ofWrongResult(String what, PrintWriter err) {
        ErrorMessage.print(err, "verification failed" + what);
        return FAILED;
    }
}
