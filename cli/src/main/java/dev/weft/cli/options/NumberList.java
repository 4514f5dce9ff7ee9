package dev.weft.cli.options;

import dev.weft.cli.console.UsageException;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads {@code 4096}, {@code 1024,4096} and {@code 1024..16384}, which doubles from end to end. */
public final class NumberList {

    private static final Pattern NUMBER = Pattern.compile("([0-9]{1,18})(?:\\.\\.([0-9]{1,18}))?");

    private NumberList() {}

    /** Each number once, in the order given. */
    public static List<Long> parse(String option, String text, long least, long most) {
        Set<Long> numbers = new LinkedHashSet<>();
        for (String part : text.split(",", -1)) {
            Matcher matcher = NUMBER.matcher(part.strip());
            if (!matcher.matches()) {
                throw wrong(option, text, least, most);
            }
            long first = Long.parseLong(matcher.group(1));
            long last = matcher.group(2) == null ? first : Long.parseLong(matcher.group(2));
            if (first < least || last > most || last < first || first == 0 && last > 0) {
                throw wrong(option, text, least, most);
            }
            numbers.add(first);
            for (long number = 2 * first; number > first && number <= last; number *= 2) {
                numbers.add(number);
            }
        }
        return List.copyOf(numbers);
    }

    /** Reads such a list of numbers of ranks or splits. */
    public static List<Integer> parseInts(String option, String text, int least, int most) {
        return parse(option, text, least, most).stream().map(Long::intValue).toList();
    }

    private static UsageException wrong(String option, String text, long least, long most) {
        return new UsageException(
                "%s '%s': expected numbers from %s to %s such as 1024,4096 or 1024..16384,"
                        + " which doubles",
                option, text, least, most);
    }
}
