package dev.weft.cli.console;

import dev.weft.process.SafeText;
import java.io.PrintWriter;
import java.util.Locale;

/**
 * Output for people; silent if asked to be. File names and texts from records cannot affect a
 * terminal: every line is made {@linkplain SafeText#harmless harmless} first.
 */
public record Console(PrintWriter out, boolean quiet) {

    public void info(String line) {
        print("[INFO] " + line);
    }

    public void print(String line) {
        draw(SafeText.harmless(line));
    }

    /** A value with its label, below a heading. */
    public void line(String label, String value) {
        print(String.format(Locale.ROOT, "  %-14s%s", label, value));
    }

    /** Prints a line with colours, no part of which comes from a user. */
    public void draw(String line) {
        if (!quiet) {
            out.println(line);
            out.flush();
        }
    }
}
