package dev.weft.cli.console;

import dev.weft.text.SafeText;
import java.io.PrintWriter;

/**
 * What people read; silent when asked to be. Names of files and texts out of records cannot do
 * anything to a terminal: every line is made {@linkplain SafeText#harmless harmless} first.
 */
public record Console(PrintWriter out, boolean quiet) {

    public void info(String line) {
        print("[INFO] " + line);
    }

    public void print(String line) {
        draw(SafeText.harmless(line));
    }

    /** A line with colours, of which no part comes from a user. */
    public void draw(String line) {
        if (!quiet) {
            out.println(line);
            out.flush();
        }
    }
}
