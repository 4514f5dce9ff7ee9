package dev.weft.cli.launch;

import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.function.Consumer;

/**
 * Prints what a rank writes, whole lines at a time, each with the rank's number before it. So ranks
 * do not write into each other's lines. Used by one thread.
 */
final class PrefixedLines implements Consumer<byte[]>, Closeable {

    /** A longer line is printed in parts. */
    private static final int MOST_BYTES = 1 << 16;

    private final String prefix;
    private final PrintWriter console;
    private final ByteArrayOutputStream line = new ByteArrayOutputStream();

    PrefixedLines(int rank, PrintWriter console) {
        this.prefix = "[" + rank + "] ";
        this.console = console;
    }

    @Override
    public void accept(byte[] some) {
        for (byte one : some) {
            if (one != '\n') {
                line.write(one);
            }
            if (one == '\n' || line.size() == MOST_BYTES) {
                print();
            }
        }
        console.flush();
    }

    private void print() {
        console.println(prefix + line.toString(StandardCharsets.UTF_8));
        line.reset();
    }

    /** Prints what came after the last line's end. */
    @Override
    public void close() {
        if (line.size() > 0) {
            print();
        }
        console.flush();
    }
}
