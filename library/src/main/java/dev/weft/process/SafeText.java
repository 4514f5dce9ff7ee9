package dev.weft.process;

import java.util.regex.Pattern;

/** Text from users and files, made safe for messages. Thread-safe. */
public final class SafeText {

    /** Control characters, line ends, and characters that change the direction of text. */
    private static final Pattern HARMFUL =
            Pattern.compile("[\\p{Cc}\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]");

    private static final int EXCERPT_CHARS = 60;

    private SafeText() {}

    /** The text with a question mark for every character that a terminal might obey. */
    public static String harmless(String text) {
        return HARMFUL.matcher(text).replaceAll("?");
    }

    /** The beginning of the text, {@linkplain #harmless harmless} and on one line. */
    public static String excerpt(String text) {
        return text.length() <= EXCERPT_CHARS
                ? harmless(text)
                : harmless(text.substring(0, EXCERPT_CHARS)) + "...";
    }
}
