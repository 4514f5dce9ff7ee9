package dev.weft.cli.launch;

import dev.weft.cli.console.Progress;
import dev.weft.cli.message.RankFile;
import dev.weft.fabric.memory.ShmJob;
import java.nio.file.Path;

/** How far the ranks have come, passed from a rank's process to the command in a small file. */
public final class ProgressFile {

    private record Measured(long done, long total) {}

    private static final RankFile<Measured> FILE =
            new RankFile<>("WEFT_PROGRESS", "progress", Measured.class, 64);

    private ProgressFile() {}

    /** Asks the first rank of a job to report its progress. */
    public static void askFor(ProcessBuilder builder, ShmJob job) {
        FILE.askFor(builder, job.folder(), 0);
    }

    /** Whether this process is a rank that was asked to report its progress. */
    public static boolean isAskedFor() {
        return FILE.isAskedFor();
    }

    /**
     * Progress that the first rank writes to the file if the command asked for it; silent
     * otherwise.
     */
    public static Progress ofRank(int rank) {
        if (rank != 0 || !isAskedFor()) {
            return new Progress(false);
        }
        return new Progress(false) {
            @Override
            public synchronized void advance(long done) {
                // If it fails, only the terminal's progress line is lost.
                FILE.tell(new Measured(done, total()));
            }
        };
    }

    /** Shows what the first rank has reported, if it can be read now. */
    public static void show(Path folder, Progress progress) {
        FILE.readable(folder, 0)
                .ifPresent(now -> progress.continueWith("measuring", now.done(), now.total()));
    }
}
