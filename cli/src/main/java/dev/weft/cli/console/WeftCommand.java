package dev.weft.cli.console;

import java.io.PrintWriter;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** What all commands have: help, a version, options in the order declared, and where they print. */
@Command(mixinStandardHelpOptions = true, versionProvider = Version.class, sortOptions = false)
public abstract class WeftCommand implements Callable<Integer> {

    @Spec protected CommandSpec spec;

    protected PrintWriter out() {
        return spec.commandLine().getOut();
    }

    protected PrintWriter err() {
        return spec.commandLine().getErr();
    }

    /** The subcommand and its options as they were given, for a process that parses them again. */
    protected List<String> arguments() {
        List<String> all = spec.commandLine().getParent().getParseResult().originalArgs();
        return all.subList(all.indexOf(spec.name()), all.size());
    }

    protected Console console(boolean quiet) {
        return new Console(out(), quiet);
    }
}
