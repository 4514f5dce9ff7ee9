package dev.weft.cli;

import java.io.PrintWriter;

/** What people read; silent when asked to be. */
record Console(PrintWriter out, boolean quiet) {

    void info(String line) {
        print("[INFO] " + line);
    }

    void print(String line) {
        if (!quiet) {
            out.println(line);
            out.flush();
        }
    }
}
