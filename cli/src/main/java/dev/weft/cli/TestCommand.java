package dev.weft.cli;

import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * {@code weft test} is answered by the launcher; this one exists so that help and completion know
 * it.
 */
@Command(
        name = "test",
        mixinStandardHelpOptions = true,
        description = "Builds Weft and runs its tests; only in a clone of the repository.",
        footer = {
            "",
            "Examples:",
            "  ./weft test                  what this machine can run; the rest is skipped visibly",
            "  ./weft test --with-extras    first installs MPI, OpenBLAS and Chromium (Debian)",
            "  ./weft test --all            also the long tests: over an hour"
        })
final class TestCommand implements Runnable {

    @Option(names = "--with-extras", description = "Install optional parts first.")
    boolean withExtras;

    @Option(names = "--all", description = "Also run the long tests.")
    boolean all;

    @Override
    public void run() {
        throw new UsageException("'weft test' needs a clone: run ./weft test there");
    }
}
