package dev.weft.text;

import java.util.regex.Pattern;

/** Texts that users and files give, made fit for a message. Any thread may call it. */
public final class SafeText {

    /** Control characters, ends of lines, and what turns the direction of the text around it. */
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
