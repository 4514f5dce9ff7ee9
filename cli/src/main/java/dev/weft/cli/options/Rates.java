package dev.weft.cli.options;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Reads {@code 600mbit}, {@code 10gbit} and the like as bits per second. */
public final class Rates implements ITypeConverter<Long> {

    private static final Pattern FORM = Pattern.compile("([1-9][0-9]{0,8})(kbit|mbit|gbit)");

    private static final long MOST = 1_000_000_000_000L;

    @Override
    public Long convert(String text) {
        Matcher matcher = FORM.matcher(text);
        if (!matcher.matches()) {
            throw new TypeConversionException(
                    "'"
                            + text
                            + "' is not a rate: expected for example 600mbit, 10gbit or 500kbit");
        }
        long unit =
                switch (matcher.group(2)) {
                    case "kbit" -> 1_000L;
                    case "mbit" -> 1_000_000L;
                    default -> 1_000_000_000L;
                };
        long rate = Long.parseLong(matcher.group(1)) * unit;
        if (rate > MOST) {
            throw new TypeConversionException("'" + text + "': expected at most 1000gbit");
        }
        return rate;
    }

    /** As {@link #convert} reads it, rounded to three digits. */
    public static String text(double bitsPerSecond) {
        double kbit = bitsPerSecond / 1e3;
        double step = Math.pow(10, Math.max(0, Math.floor(Math.log10(kbit)) - 2));
        long rounded = Math.max(1, Math.round(kbit / step) * Math.round(step));
        if (rounded % 1_000_000 == 0) {
            return rounded / 1_000_000 + "gbit";
        }
        return rounded % 1_000 == 0 ? rounded / 1_000 + "mbit" : rounded + "kbit";
    }
}
