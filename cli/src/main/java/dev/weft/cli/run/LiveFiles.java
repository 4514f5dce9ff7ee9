package dev.weft.cli.run;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** What rank processes have measured so far, told to the command through a file for each. */
final class LiveFiles {

    /** Environment variable: the folder of those files, where somebody watches. */
    static final String VARIABLE = "WEFT_LIVE";

    private LiveFiles() {}

    private static Path file(Path folder, int rank) {
        return folder.resolve("live-" + rank);
    }

    /** Writes down what a rank's process measures; null where the command does not ask for it. */
    static RoundListener listener() {
        String folder = System.getenv(VARIABLE);
        return folder == null ? null : (rank, soFar) -> write(file(Path.of(folder), rank), soFar);
    }

    private static void write(Path file, RankReport soFar) {
        try {
            soFar.write(file);
        } catch (IOException e) {
            notTold(e);
        }
    }

    /** Only a picture is lost; the run itself must not fail for it. */
    private static void notTold(IOException e) {
        System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "a watched round is lost", e);
    }

    /** Passes on what is there; files are replaced whole, and taken away before they are read. */
    static void show(Path folder, int ranks, RoundListener listener) {
        for (int rank = 0; rank < ranks; rank++) {
            Path file = file(folder, rank);
            if (Files.exists(file)) {
                try {
                    Path taken = file.resolveSibling(file.getFileName() + ".taken");
                    Files.move(file, taken, StandardCopyOption.ATOMIC_MOVE);
                    listener.round(rank, RankReport.read(taken));
                    Files.delete(taken);
                } catch (IOException e) {
                    notTold(e);
                }
            }
        }
    }
}
