package dev.weft.cli.console;

import java.io.PrintWriter;

/** The exit codes of the command, besides 0. */
public final class ExitCode {

    /** A run was rightly asked for and did not succeed. */
    public static final int FAILED = 1;

    /** Wrong usage, or a part that is not there. */
    public static final int USAGE = 2;

    private ExitCode() {}

    /** That of a wrong result; it is told in one line, however quiet the command is to be. */
    public static int ofWrongResult(String what, PrintWriter err) {
        ErrorMessage.print(err, "verification failed" + what);
        return FAILED;
    }
}
