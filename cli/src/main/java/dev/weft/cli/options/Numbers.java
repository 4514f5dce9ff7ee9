package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import java.util.function.Function;
import java.util.regex.Pattern;
import picocli.CommandLine;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.TypeConversionException;

/**
 * How all options read numbers and lists: with the digits 0 to 9 alone, though Java knows those of
 * other scripts, and with a value between any two commas.
 */
public final class Numbers {

    private static final Pattern WHOLE = Pattern.compile("[-+]?[0-9]{1,19}");
    private static final Pattern DECIMAL =
            Pattern.compile(
                    "[-+]?([0-9]{1,40}\\.?[0-9]{0,40}|\\.[0-9]{1,40})([eE][-+]?[0-9]{1,4})?");

    private Numbers() {}

    /** Sets the parser, and those of its commands, to read numbers like this. */
    public static void register(CommandLine line) {
        line.registerConverter(Long.class, whole(Long::valueOf));
        line.registerConverter(Long.TYPE, whole(Long::valueOf));
        line.registerConverter(Integer.class, whole(Integer::valueOf));
        line.registerConverter(Integer.TYPE, whole(Integer::valueOf));
        line.registerConverter(Double.class, Numbers::decimal);
        line.registerConverter(Double.TYPE, Numbers::decimal);
    }

    private static <T> ITypeConverter<T> whole(Function<String, T> conversion) {
        return text -> {
            if (!WHOLE.matcher(text).matches()) {
                throw wrong(text, "a whole number");
            }
            try {
                return conversion.apply(text);
            } catch (NumberFormatException e) {
                throw wrong(text, "a smaller number");
            }
        };
    }

    private static double decimal(String text) {
        if (!DECIMAL.matcher(text).matches()) {
            throw wrong(text, "a number");
        }
        return Double.parseDouble(text);
    }

    private static TypeConversionException wrong(String text, String expected) {
        return new TypeConversionException("'" + text + "': expected " + expected);
    }

    /** Refuses lists with nothing after a last comma, which the parser would pass over. */
    public static void checkLists(ParseResult parsed) {
        for (OptionSpec option : parsed.matchedOptions()) {
            String separator = option.splitRegex();
            for (String text : option.originalStringValues()) {
                if (!separator.isEmpty() && text.endsWith(separator)) {
                    throw new UsageException(
                            "%s %s: expected a value after the last comma",
                            option.longestName(), text);
                }
            }
        }
        if (parsed.hasSubcommand()) {
            checkLists(parsed.subcommand());
        }
    }
}
