package dev.weft.cli;

import picocli.AutoComplete;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code weft completion}: the script that teaches a shell Weft's options. */
@Command(
        name = "completion",
        mixinStandardHelpOptions = true,
        description = "Prints the completion script for bash and zsh.",
        footer = {"", "Example:", "  source <(./weft completion)"})
final class CompletionCommand implements Runnable {

    @Spec CommandSpec spec;

    @Override
    public void run() {
        spec.commandLine().getOut().print(AutoComplete.bash("weft", spec.root().commandLine()));
        spec.commandLine().getOut().flush();
    }
}
