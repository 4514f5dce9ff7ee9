package dev.weft.cli;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.OptionSections;
import dev.weft.cli.console.RunFailedException;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.UsageMessage;
import dev.weft.cli.console.Version;
import dev.weft.cli.data.GenDataCommand;
import dev.weft.cli.diagnosis.FailureDiagnosis;
import dev.weft.cli.diagnosis.FailureTable;
import dev.weft.cli.diagnosis.RankFailure;
import dev.weft.cli.launch.LaunchCommand;
import dev.weft.cli.launch.MpiRank;
import dev.weft.cli.launch.TerminationSignal;
import dev.weft.cli.options.Numbers;
import dev.weft.cli.options.Settings;
import dev.weft.cli.run.RunCommand;
import dev.weft.cli.simulate.CalibrateCommand;
import dev.weft.cli.simulate.PlanCommand;
import dev.weft.cli.simulate.SweepCommand;
import dev.weft.cli.verify.VerifyCommand;
import dev.weft.cli.view.ReportCommand;
import dev.weft.fabric.FabricException;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.process.ShutdownHooks;
import java.io.PrintWriter;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.ExecutionException;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.Spec;

/** Parses the command line and turns every outcome into an exit code. */
@Command(
        name = "weft",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        description =
                "C = allgather(A) x B, computed while A is still arriving: communication hidden"
                        + " behind compute.",
        footer = {
            "",
            "Examples:",
            "  ./weft demo                                  what overlap saves, on a slow link",
            "  ./weft run                                   2 ranks, 2048 x 2048 x 1024, fp16",
            "  ./weft run -n 4 --algorithm ring --launcher processes",
            "  ./weft run -r sim -v Ascend910B1 -n 8        the same on a model of a machine",
            "  ./weft doctor                                what this machine offers",
            "  ./weft run --help                            all options of run"
        })
public final class Main implements Runnable {

    /** In the order of the help text: the most used ones, those of other jars, the others. */
    private static final List<Class<?>> MOST_USED =
            List.of(
                    RunCommand.class,
                    DemoCommand.class,
                    SweepCommand.class,
                    PlanCommand.class,
                    CalibrateCommand.class,
                    ReportCommand.class);

    private static final List<Class<?>> OTHERS =
            List.of(
                    LaunchCommand.class,
                    GenDataCommand.class,
                    VerifyCommand.class,
                    DoctorCommand.class,
                    CompletionCommand.class,
                    LauncherCommands.Java.class,
                    LauncherCommands.Javac.class,
                    LauncherCommands.Install.class,
                    LauncherCommands.Lab.class,
                    LauncherCommands.Test.class,
                    LauncherCommands.Soak.class,
                    LauncherCommands.Faults.class,
                    LauncherCommands.Stragglers.class,
                    LauncherCommands.Fuzz.class,
                    LauncherCommands.Prove.class,
                    LauncherCommands.Dist.class,
                    PackKernelsCommand.class,
                    CommandLine.HelpCommand.class);

    private static final String COMMON =
            "try demo, run, plan, sweep, report, ring, fgcc, gather, helion or doctor";

    @Spec private CommandSpec spec;

    public static void main(String[] arguments) {
        TerminationSignal.watch();
        Thread.setDefaultUncaughtExceptionHandler(Main::tellOfThread);
        Thread hook = new Thread(Main::tellOfSignal, "weft-signal");
        if (!ShutdownHooks.add(hook)) {
            tellOfSignal();
        }
        System.exit(StandardOutput.execute(commandLine(arguments), arguments));
    }

    private static void tellOfThread(Thread thread, Throwable failure) {
        String what = "thread %s failed: %s".formatted(thread.getName(), failure);
        try {
            System.err.println("weft: " + ErrorMessage.oneLine(what));
        } catch (LinkageError e) {
            // Without file handles no class can be loaded.
            System.err.println("weft: " + what + ": are there enough file handles (ulimit -n)?");
        }
    }

    /** Names the signal that ends the process. */
    private static void tellOfSignal() {
        String signal = TerminationSignal.received().orElse(null);
        if (signal != null && MpiEnvironment.current().launched()) {
            MpiRank.tellOfSignalBefore();
        } else if (signal != null) {
            System.err.println("weft: ended by " + signal);
        }
    }

    /** Picocli lets errors through, but a shape that is too large needs no stack trace. */
    public static int execute(CommandLine command, String... arguments) {
        try {
            // Asked again wherever it matters whether this is a rank, also while an error is
            // reported.
            MpiEnvironment.current();
            return command.execute(arguments);
        } catch (IllegalArgumentException e) {
            ErrorMessage.print(command.getErr(), ErrorMessage.of(e));
            return ExitCode.USAGE;
        } catch (OutOfMemoryError e) {
            boolean threads = String.valueOf(e.getMessage()).contains("native thread");
            String message =
                    threads
                            ? ErrorMessage.of(e)
                            : "not enough memory for this problem: " + e.getMessage();
            RankFailure.tellStarter(new RunFailedException(message), false);
            ErrorMessage.print(command.getErr(), message);
            return ExitCode.FAILED;
        } catch (LinkageError e) {
            String message =
                    "a part of Weft cannot be loaded (%s): are there enough file handles (ulimit -n)?"
                            .formatted(e);
            ErrorMessage.print(command.getErr(), message);
            return ExitCode.FAILED;
        }
    }

    /**
     * The parser for these arguments. It knows all commands, unless the first argument names one:
     * building the model of all takes as long as a small run.
     */
    public static CommandLine commandLine(String... arguments) {
        return commandLine(System.getenv(), arguments);
    }

    static CommandLine commandLine(Map<String, String> environment, String... arguments) {
        // The tracer would report a stray quote in a value on separate lines.
        CommandLine.tracer().setLevel(CommandLine.TraceLevel.OFF);
        CommandLine line = new CommandLine(new Main());
        commands()
                .filter(command -> arguments.length > 0 && isNamed(command, arguments[0]))
                // The help command lists all the others.
                .filter(command -> command != CommandLine.HelpCommand.class)
                .findFirst()
                .ifPresentOrElse(
                        line::addSubcommand, () -> commands().forEach(line::addSubcommand));
        CommandLine run = line.getSubcommands().get("run");
        if (run != null) {
            OptionSections.in(run.getCommandSpec(), RunCommand.HELP_SECTIONS);
        }
        for (CommandLine command : line.getSubcommands().values()) {
            if (command.getCommandSpec().userObject() instanceof LauncherCommands.Stress) {
                LauncherCommands.Stress.showKeptHelp(command);
            }
        }
        CommandLine launch = line.getSubcommands().get("launch");
        if (launch != null) {
            // What follows the program is the program's.
            launch.setStopAtPositional(true);
        }
        Numbers.register(line);
        return line.setExecutionStrategy(parsed -> execute(parsed, environment))
                .setCaseInsensitiveEnumValuesAllowed(false)
                .setUsageHelpAutoWidth(false)
                .setUsageHelpWidth(100)
                .setParameterExceptionHandler(Main::usageError)
                .setExecutionExceptionHandler(
                        (failure, command, parsed) -> executionError(failure, command));
    }

    private static int execute(ParseResult parsed, Map<String, String> environment) {
        if (CommandLine.executeHelpRequest(parsed) != null) {
            return 0;
        }
        try {
            Settings.check(environment);
            Numbers.checkLists(parsed);
        } catch (UsageException e) {
            throw new ExecutionException(parsed.asCommandLineList().getLast(), e.getMessage(), e);
        }
        return new CommandLine.RunLast().execute(parsed);
    }

    private static boolean isNamed(Class<?> command, String name) {
        return command.getAnnotation(Command.class).name().equals(name);
    }

    /** Looks for other jars' commands only where its own most used ones did not end the search. */
    private static Stream<Class<?>> commands() {
        Stream<Class<?>> added =
                Stream.of(Main.class.getClassLoader())
                        .flatMap(loader -> ServiceLoader.load(AddOnCommand.class, loader).stream())
                        .map(ServiceLoader.Provider::type);
        return Stream.of(MOST_USED.stream(), added, OTHERS.stream()).flatMap(part -> part);
    }

    /** Picocli would print the whole usage text; one line with a pointer to it is enough. */
    private static int usageError(ParameterException failure, String[] arguments) {
        ErrorMessage.print(
                failure.getCommandLine().getErr(), UsageMessage.of(failure, arguments, COMMON));
        return ExitCode.USAGE;
    }

    private static int executionError(Exception failure, CommandLine command) {
        boolean usage =
                failure instanceof UsageException || failure instanceof IllegalArgumentException;
        boolean reported = RankFailure.tellStarter(failure, usage);
        if (failure instanceof RunFailedException && TerminationSignal.received().isPresent()) {
            // The signal is reported when the process ends; this only followed from it.
            return ExitCode.FAILED;
        }
        PrintWriter err = command.getErr();
        if (failure instanceof FabricException e && !reported) {
            tellOfRanks(e, err);
        } else if (!reported || !RankFailure.isHeardByStarter()) {
            ErrorMessage.print(err, ErrorMessage.of(failure));
        }
        if (failure instanceof RunFailedException e) {
            ErrorMessage.print(err, e.details());
        }
        return usage ? ExitCode.USAGE : ExitCode.FAILED;
    }

    /** All ranks are threads of this process, or this is one that was not started from here. */
    private static void tellOfRanks(FabricException failure, PrintWriter err) {
        List<RankFailure> ends = RankFailure.allOf(failure);
        if (ends.size() == 1) {
            ErrorMessage.print(err, ErrorMessage.of(failure));
            failure.report().ifPresent(s -> ErrorMessage.print(err, s.table().lines().toList()));
        } else {
            ErrorMessage.print(
                    err,
                    new FailureDiagnosis(ends, Map.of()).line().orElse(ErrorMessage.of(failure)));
            ErrorMessage.print(err, FailureTable.lines(FailureTable.ranks(ends), ends, Map.of()));
        }
    }

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "no command given: " + COMMON);
    }
}
