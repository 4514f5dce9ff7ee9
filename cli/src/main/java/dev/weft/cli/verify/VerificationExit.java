package dev.weft.cli.verify;

import dev.weft.cli.console.ExitCode;
import dev.weft.report.Verification;
import java.io.PrintWriter;

/** What a verification means for the exit code; a failure is told even to those who want quiet. */
public final class VerificationExit {

    private VerificationExit() {}

    public static int exitCode(boolean passed, Verification verification, PrintWriter err) {
        if (passed) {
            return 0;
        }
        err.println("weft: verification failed: " + verification.describeFailure());
        err.flush();
        return ExitCode.FAILED;
    }
}
