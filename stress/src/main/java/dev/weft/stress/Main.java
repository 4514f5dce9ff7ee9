package dev.weft.stress;

import dev.weft.cli.StandardOutput;
import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.console.UsageMessage;
import dev.weft.fuzz.FuzzCommand;
import dev.weft.model.ProveCommand;
import java.io.PrintWriter;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** What the launcher runs for the commands that put Weft under stress. */
@Command(
        name = "weft",
        subcommands = {
            FaultsCommand.class,
            StragglersCommand.class,
            SoakCommand.class,
            FuzzCommand.class,
            ProveCommand.class
        })
public final class Main implements Runnable {

    private static final String COMMANDS = "expected faults, stragglers, soak, fuzz or prove";
    private static final int FAILED = 1;
    private static final int USAGE = 2;

    @Spec private CommandSpec spec;

    public static void main(String[] arguments) {
        System.exit(StandardOutput.execute(commandLine(), arguments));
    }

    static CommandLine commandLine() {
        return new CommandLine(new Main())
                .setUsageHelpAutoWidth(false)
                .setUsageHelpWidth(100)
                .setParameterExceptionHandler(
                        (failure, words) ->
                                oneLine(
                                        failure.getCommandLine().getErr(),
                                        UsageMessage.of(failure, words, COMMANDS),
                                        USAGE))
                .setExecutionExceptionHandler(
                        (failure, command, parsed) ->
                                oneLine(command.getErr(), ErrorMessage.of(failure), FAILED));
    }

    private static int oneLine(PrintWriter err, String message, int code) {
        ErrorMessage.print(err, message);
        return code;
    }

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "no command given: " + COMMANDS);
    }
}
