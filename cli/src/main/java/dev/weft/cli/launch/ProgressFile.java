package dev.weft.cli.launch;

import dev.weft.cli.console.Progress;
import dev.weft.files.PrivateFiles;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** How far the ranks have come, told from a rank's process to the command through a small file. */
public final class ProgressFile {

    /** Environment variable: where the first rank leaves its progress. */
    public static final String VARIABLE = "WEFT_PROGRESS";

    private static final String MEASURING = "measuring";

    /** Two numbers and a blank. */
    private static final int MOST_BYTES = 64;

    private ProgressFile() {}

    /** Progress that the first rank writes down, if the command asked for it; silent otherwise. */
    public static Progress ofRank(int rank) {
        String file = System.getenv(VARIABLE);
        if (rank != 0 || file == null) {
            return new Progress(false);
        }
        Path path = Path.of(file);
        return new Progress(false) {
            private long total;

            @Override
            public synchronized void begin(String what, long total) {
                this.total = total;
            }

            @Override
            public synchronized void advance(long done) {
                try {
                    String text = done + " " + total;
                    PrivateFiles.write(path, text.getBytes(StandardCharsets.UTF_8));
                } catch (IOException e) {
                    // Only a picture on a terminal is lost; the run itself must not fail for it.
                    System.getLogger("dev.weft")
                            .log(System.Logger.Level.DEBUG, "progress not told", e);
                }
            }
        };
    }

    /** Shows what the file says, if it can be read just now. */
    public static void show(Path file, Progress progress) {
        try {
            byte[] text = PrivateFiles.read(file, MOST_BYTES);
            String[] parts = new String(text, StandardCharsets.UTF_8).split(" ");
            if (parts.length == 2) {
                progress.continueWith(
                        MEASURING, Long.parseLong(parts[0]), Long.parseLong(parts[1]));
            }
        } catch (IOException | NumberFormatException e) {
            // Not there yet: the next look will do.
            System.getLogger("dev.weft").log(System.Logger.Level.TRACE, "no progress yet", e);
        }
    }
}
