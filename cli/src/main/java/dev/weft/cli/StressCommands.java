package dev.weft.cli;

import dev.weft.cli.console.UsageException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;
import picocli.CommandLine.Unmatched;

/**
 * The commands that try faults and rare orders of events. The launcher of a clone runs them out of
 * the stress module; these exist so that help and completion know them.
 */
final class StressCommands {

    private StressCommands() {}

    /** Answers where there is no clone. */
    abstract static class InClone implements Runnable {

        @Spec CommandSpec spec;
        @Unmatched String[] arguments;

        @Override
        public void run() {
            throw new UsageException(
                    "'weft %s' needs a clone: run ./weft %s there"
                            .formatted(spec.name(), spec.name()));
        }
    }

    @Command(
            name = "soak",
            description = "Random problems, launchers and faults, for as long as wanted.")
    static final class Soak extends InClone {}

    @Command(
            name = "faults",
            description = "Every fault in every phase on every fabric, and what became of it.")
    static final class Faults extends InClone {}

    @Command(
            name = "stragglers",
            description = "Thousands of calls by ranks that are late at random.")
    static final class Stragglers extends InClone {}

    @Command(name = "fuzz", description = "Broken files, records and variables for every reader.")
    static final class Fuzz extends InClone {}

    @Command(name = "prove", description = "All states of the progress protocol, for small groups.")
    static final class Prove extends InClone {}
}
