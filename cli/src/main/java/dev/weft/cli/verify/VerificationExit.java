package dev.weft.cli.verify;

import dev.weft.cli.console.ExitCode;
import dev.weft.report.Verification;
import picocli.CommandLine.Model.CommandSpec;

/** What a verification means for the exit code; a failure is told even to those who want quiet. */
public final class VerificationExit {

    private VerificationExit() {}

    public static int exitCode(boolean passed, Verification verification, CommandSpec command) {
        if (passed) {
            return 0;
        }
        command.commandLine()
                .getErr()
                .println("weft: verification failed: " + verification.describeFailure());
        command.commandLine().getErr().flush();
        return ExitCode.FAILED;
    }
}
