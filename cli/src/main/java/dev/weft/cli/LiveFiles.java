package dev.weft.cli;

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

    /** Progress of a rank's process, whose rounds are written down where the command asks. */
    static Progress ofRank(int rank) {
        Progress progress = ProgressFile.ofRank(rank);
        String folder = System.getenv(VARIABLE);
        if (folder == null) {
            return progress;
        }
        return new Progress(false) {
            @Override
            void begin(String what, long total) {
                progress.begin(what, total);
            }

            @Override
            void advance(long done) {
                progress.advance(done);
            }

            @Override
            boolean wantsRounds() {
                return true;
            }

            @Override
            void round(int rankOfWorld, RankReport soFar) {
                try {
                    soFar.write(file(Path.of(folder), rankOfWorld));
                } catch (IOException e) {
                    notTold(e);
                }
            }
        };
    }

    /** Only a picture is lost; the run itself must not fail for it. */
    private static void notTold(IOException e) {
        System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "a watched round is lost", e);
    }

    /** Passes on what is there; files are replaced whole, and taken away before they are read. */
    static void show(Path folder, int ranks, Progress progress) {
        for (int rank = 0; rank < ranks && progress.wantsRounds(); rank++) {
            Path file = file(folder, rank);
            if (Files.exists(file)) {
                try {
                    Path taken = file.resolveSibling(file.getFileName() + ".taken");
                    Files.move(file, taken, StandardCopyOption.ATOMIC_MOVE);
                    progress.round(rank, RankReport.read(taken));
                    Files.delete(taken);
                } catch (IOException e) {
                    notTold(e);
                }
            }
        }
    }
}
