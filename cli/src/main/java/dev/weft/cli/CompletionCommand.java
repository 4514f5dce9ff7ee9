package dev.weft.cli;

import dev.weft.cli.console.WeftCommand;
import picocli.AutoComplete;
import picocli.CommandLine.Command;

/** {@code weft completion}: the script that teaches a shell Weft's options. */
@Command(
        name = "completion",
        description = "Prints the completion script for bash and zsh.",
        footer = {"", "Example:", "  source <(./weft completion)"})
final class CompletionCommand extends WeftCommand {

    @Override
    public Integer call() {
        out().print(AutoComplete.bash("weft", Main.commandLine()));
        out().flush();
        return 0;
    }
}
