package dev.weft.cli.console;

import dev.weft.process.SafeText;
import java.io.PrintWriter;
import java.util.Locale;

/**
 * Output for people; silent if asked to be. File names and texts from records cannot affect a
 * terminal: every line is made {@linkplain SafeText#harmless harmless} first.
 */
public record Console(PrintWriter out, boolean quiet) {

    public void info(String line, Object... values) {
        print("[INFO] " + line, values);
    }

    /**
     * @param values the values for the line's placeholders; if empty, it has none
     */
    public void print(String line, Object... values) {
        String text = values.length == 0 ? line : String.format(Locale.ROOT, line, values);
        draw(SafeText.harmless(text));
    }

    /** A value with its label, below a heading. */
    public void line(String label, String value) {
        print("  %-14s%s", label, value);
    }

    /** Prints a line with colours, no part of which comes from a user. */
    public void draw(String line) {
        if (!quiet) {
            out.println(line);
            out.flush();
        }
    }
}
