package dev.weft.cli;

import dev.weft.cli.console.UsageException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/**
 * {@code weft test} is answered by the launcher; this one exists so that help and completion know
 * it.
 */
@Command(
        name = "test",
        mixinStandardHelpOptions = true,
        description =
                "Builds Weft and runs its tests, in a clone of the repository. In a folder that"
                        + " 'weft dist' packed nothing is built, and only --gpu is there.",
        footer = {
            "",
            "Examples:",
            "  ./weft test                  what this machine can run; the rest is skipped visibly",
            "  ./weft test --gpu            only the tests of the GPU",
            "  ./weft test --with-extras    first installs MPI, OpenBLAS and Chromium (Debian)",
            "  ./weft test --all            also the long tests: over an hour"
        })
final class TestCommand implements Runnable {

    @Option(names = "--gpu", description = "Only the tests that need a GPU.")
    boolean gpu;

    @Option(names = "--with-extras", description = "Install optional parts first.")
    boolean withExtras;

    @Option(names = "--all", description = "Also run the long tests.")
    boolean all;

    @Override
    public void run() {
        throw new UsageException(
                "'weft test' needs a clone or a packed folder: run ./weft test there");
    }
}
