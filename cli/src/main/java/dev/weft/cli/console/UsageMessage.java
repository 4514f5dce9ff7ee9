package dev.weft.cli.console;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/** What is wrong with a command line, in one line with a pointer to the help text. */
public final class UsageMessage {

    private static final Pattern NO_PAIR =
            Pattern.compile("Value for option (option '\\S+') \\((.*)\\) should .* but was (.*)");

    private UsageMessage() {}

    /**
     * @param arguments as they were typed
     * @param commands which commands to try if none has the given name
     */
    public static String of(ParameterException failure, String[] arguments, String commands) {
        CommandSpec command = failure.getCommandLine().getCommandSpec();
        String what = withTypedName(what(failure, commands), failure, arguments);
        String message = ErrorMessage.oneLine(what).replaceFirst("\\.$", "");
        String help = "see '" + command.qualifiedName() + " --help'";
        return message.endsWith("?") ? message + " (" + help + ")" : message + "; " + help;
    }

    private static String what(ParameterException failure, String commands) {
        String message = failure.getMessage();
        if (failure instanceof UnmatchedArgumentException unmatched) {
            return unmatched(unmatched, commands);
        }
        if (message.startsWith("Unknown subcommand ")) {
            // Of the help command.
            CommandLine all = failure.getCommandLine();
            return unmatched(
                    new UnmatchedArgumentException(all, List.of(failure.getValue())), commands);
        }
        Matcher noPair = NO_PAIR.matcher(message);
        return noPair.matches()
                ? "Invalid value for %s: '%s': expected %s"
                        .formatted(noPair.group(1), noPair.group(3), noPair.group(2))
                : message;
    }

    /** Names an option as it was typed, and not by another of its names. */
    private static String withTypedName(
            String message, ParameterException failure, String[] arguments) {
        if (failure.getArgSpec() instanceof OptionSpec option) {
            for (String name : option.names()) {
                for (String argument : arguments) {
                    if (argument.equals(name) || argument.startsWith(name + "=")) {
                        return message.replace("'" + option.longestName() + "'", "'" + name + "'");
                    }
                }
            }
        }
        return message;
    }

    private static String unmatched(UnmatchedArgumentException failure, String commands) {
        CommandSpec command = failure.getCommandLine().getCommandSpec();
        String first = failure.getUnmatched().getFirst();
        boolean option = failure.isUnknownOption() || first.startsWith("-");
        boolean group = !command.subcommands().isEmpty();
        String what = option ? "option" : group ? "command" : "argument";
        String unknown = "unknown %s '%s'".formatted(what, first);
        List<String> similar = failure.getSuggestions();
        if (!similar.isEmpty()) {
            return unknown
                    + ", did you mean "
                    + similar.getFirst().replaceFirst("^weft ", "")
                    + "?";
        }
        if (option) {
            return unknown;
        }
        return unknown + (command.parent() == null ? ": " + commands : expected(command));
    }

    private static String expected(CommandSpec command) {
        if (!command.subcommands().isEmpty()) {
            return ": expected one of "
                    + new LinkedHashSet<>(command.subcommands().values())
                            .stream()
                                    .map(CommandLine::getCommandSpec)
                                    .filter(one -> !one.usageMessage().hidden())
                                    .map(CommandSpec::name)
                                    .collect(Collectors.joining(", "));
        }
        return command.positionalParameters().isEmpty() ? ": expected options only" : "";
    }
}
