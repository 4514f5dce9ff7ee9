package dev.weft.cli.console;

import java.io.PrintWriter;
import java.util.regex.Pattern;

/**
 * What people read; silent when asked to be. Names of files and texts out of records cannot do
 * anything to a terminal: every line is made {@link #harmless} first.
 */
public record Console(PrintWriter out, boolean quiet) {

    /** Control characters, ends of lines, and what turns the direction of the text around it. */
    private static final Pattern HARMFUL =
            Pattern.compile("[\\p{Cc}\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]");

    /** A text with a question mark for every character that a terminal might obey. */
    public static String harmless(String text) {
        return HARMFUL.matcher(text).replaceAll("?");
    }

    public void info(String line) {
        print("[INFO] " + line);
    }

    public void print(String line) {
        draw(harmless(line));
    }

    /** A line with colours, of which no part comes from a user. */
    public void draw(String line) {
        if (!quiet) {
            out.println(line);
            out.flush();
        }
    }
}
