package dev.weft.time;

import java.util.Map;

/** A time in an environment variable. */
public final class TimeSetting {

    /** How long auto may measure the machine. */
    public static final String MEASURE_MS = "WEFT_AUTO_MEASURE_MS";

    /** How long auto may try its candidates. */
    public static final String TRIAL_MS = "WEFT_AUTO_TRIAL_MS";

    private TimeSetting() {}

    /** The variable's milliseconds, or what holds if it is not set. */
    public static long ms(Map<String, String> environment, String name, long otherwise) {
        String text = environment.get(name);
        if (text == null) {
            return otherwise;
        }
        if (!text.matches("[0-9]{1,6}")) {
            throw new IllegalArgumentException(
                    "environment variable %s is %s: expected milliseconds, 0 to 999999"
                            .formatted(name, text));
        }
        return Long.parseLong(text);
    }
}
