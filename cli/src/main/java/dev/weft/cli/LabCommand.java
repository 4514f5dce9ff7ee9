package dev.weft.cli;

import dev.weft.cli.console.UsageException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Unmatched;

/** {@code weft lab}: done by the launcher, since what runs there may be anything; here for help. */
@Command(
        name = "lab",
        description =
                "Makes several hosts on this machine, with links whose rate is set, and runs a"
                        + " command there; needs root (./weft lab --help).")
final class LabCommand implements Runnable {

    @Unmatched String[] arguments;

    @Override
    public void run() {
        throw new UsageException("'weft lab' needs a clone: run ./weft lab there");
    }
}
