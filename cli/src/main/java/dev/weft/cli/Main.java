package dev.weft.cli;

import dev.weft.cli.bench.BenchCommand;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Parses the command line and turns every outcome into an exit code. */
@Command(
        name = "weft",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        description =
                "C = allgather(A) x B, computed while A is still arriving: communication hidden"
                        + " behind compute.",
        subcommands = {
            RunCommand.class,
            SweepCommand.class,
            PlanCommand.class,
            CalibrateCommand.class,
            ReportCommand.class,
            RingCommand.class,
            FgccCommand.class,
            GatherCommand.class,
            LaunchCommand.class,
            GenDataCommand.class,
            VerifyCommand.class,
            DoctorCommand.class,
            BenchCommand.class,
            CompletionCommand.class,
            RankCommand.class,
            LabCommand.class,
            TestCommand.class,
            DistCommand.class,
            PackKernelsCommand.class
        },
        footer = {
            "",
            "Examples:",
            "  ./weft run                                   2 ranks, 2048 x 2048 x 1024, fp16",
            "  ./weft run -n 4 --algorithm ring --launcher processes",
            "  ./weft run -r sim -v Ascend910B1 -n 8        the same on a model of a machine",
            "  ./weft doctor                                what this machine offers",
            "  ./weft run --help                            all options of run"
        })
public final class Main implements Runnable {

    static final int FAILED = 1;
    static final int USAGE = 2;

    @Spec private CommandSpec spec;

    public static void main(String[] arguments) {
        System.exit(execute(arguments));
    }

    /** Runs one command; the exit code. */
    static int execute(String... arguments) {
        return execute(commandLine(), arguments);
    }

    /** Picocli lets errors through: a shape too large for this machine is no reason for a trace. */
    static int execute(CommandLine command, String... arguments) {
        try {
            return command.execute(arguments);
        } catch (OutOfMemoryError e) {
            oneLine(command.getErr(), "not enough memory for this problem: " + e.getMessage());
            return FAILED;
        }
    }

    static CommandLine commandLine() {
        return new CommandLine(new Main())
                .setCaseInsensitiveEnumValuesAllowed(false)
                .setUsageHelpAutoWidth(false)
                .setUsageHelpWidth(100)
                .setParameterExceptionHandler(Main::usageError)
                .setExecutionExceptionHandler(
                        (failure, command, parsed) -> executionError(failure, command));
    }

    /** Picocli would print the whole usage text; one line with a pointer to it is enough. */
    private static int usageError(ParameterException failure, String[] arguments) {
        CommandLine command = failure.getCommandLine();
        String help = "; see '" + command.getCommandSpec().qualifiedName() + " --help'";
        oneLine(command.getErr(), failure.getMessage().lines().findFirst().orElse("") + help);
        return USAGE;
    }

    private static int executionError(Exception failure, CommandLine command) {
        oneLine(command.getErr(), message(failure));
        return failure instanceof UsageException || failure instanceof IllegalArgumentException
                ? USAGE
                : FAILED;
    }

    /** The exceptions of files say only which file. */
    static String message(Throwable failure) {
        if (failure instanceof UncheckedIOException && failure.getMessage() == null) {
            return message(failure.getCause());
        }
        String text = failure.getMessage() == null ? failure.toString() : failure.getMessage();
        return switch (failure) {
            case AccessDeniedException e -> e.getFile() + ": no permission";
            case NoSuchFileException e -> e.getFile() + ": no such file or folder";
            case FileAlreadyExistsException e -> e.getFile() + ": is there, and is no folder";
            default -> text;
        };
    }

    private static void oneLine(PrintWriter err, String message) {
        err.println("weft: " + message.lines().findFirst().orElse("failed"));
        err.flush();
    }

    @Override
    public void run() {
        throw new ParameterException(
                spec.commandLine(),
                "no command given: try run, plan, sweep, report, ring, fgcc, gather or doctor");
    }
}
