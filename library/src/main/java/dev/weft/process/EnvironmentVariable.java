package dev.weft.process;

import java.util.Map;

/** Numbers in environment variables; others are refused in one line, with their value. */
public final class EnvironmentVariable {

    private EnvironmentVariable() {}

    /** A number of zero or more, in a variable that must be set. */
    public static int number(Map<String, String> environment, String name) {
        String text = environment.get(name);
        if (text == null || !text.matches("[0-9]{1,9}")) {
            throw refusal(name, text, "a number of zero or more");
        }
        return Integer.parseInt(text);
    }

    /** Milliseconds, or what holds if the variable is not set. */
    public static long ms(Map<String, String> environment, String name, long otherwise) {
        String text = environment.get(name);
        if (text != null && !text.matches("[0-9]{1,6}")) {
            throw refusal(name, text, "milliseconds, 0 to 999999");
        }
        return text == null ? otherwise : Long.parseLong(text);
    }

    private static IllegalArgumentException refusal(String name, String text, String expected) {
        return new IllegalArgumentException(
                "environment variable %s is %s: expected %s"
                        .formatted(
                                name, text == null ? "not set" : SafeText.excerpt(text), expected));
    }
}
