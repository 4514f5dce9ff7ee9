package dev.weft.cli.message;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;

/**
 * A record that each rank's process leaves in a file for the command that has started it. Files are
 * replaced whole.
 *
 * @param variable of the environment, by which a rank is asked for it
 * @param name of the file, before the rank's number
 * @param mostBytes that are read: any program may be started as a rank, and write there
 */
public record RankFile<R extends Record>(
        String variable, String name, Class<R> type, int mostBytes) {

    public Path path(Path folder, int rank) {
        return folder.resolve(name + "-" + rank);
    }

    /** Asks a rank that is about to be started. */
    public void askFor(ProcessBuilder builder, Path folder, int rank) {
        builder.environment().put(variable, path(folder, rank).toString());
    }

    /** Whether this process is asked. */
    public boolean isAskedFor() {
        return System.getenv(variable) != null;
    }

    /** Leaves the record where this process is asked for it. */
    public void write(R record) throws IOException {
        RecordBytes.write(record, Path.of(System.getenv(variable)));
    }

    /** Leaves the record, if this process is asked and it can be; whether it is there now. */
    public boolean tell(R record) {
        try {
            if (isAskedFor()) {
                write(record);
            }
            return isAskedFor();
        } catch (IOException e) {
            // Shared memory is full, for one.
            return notTold(e);
        }
    }

    private boolean notTold(IOException e) {
        System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, name + " not told", e);
        return false;
    }

    /** What a rank has left. */
    public R read(Path folder, int rank) throws IOException {
        return RecordBytes.read(type, path(folder, rank), mostBytes);
    }

    /** What a rank has left; empty where there is none, it was cut off, or is something else. */
    public Optional<R> readable(Path folder, int rank) {
        if (!Files.exists(path(folder, rank))) {
            return Optional.empty();
        }
        try {
            return Optional.of(read(folder, rank));
        } catch (IOException e) {
            // A rank may be killed while it writes: what else is known of it is worth more.
            notTold(e);
            return Optional.empty();
        }
    }

    /** As {@link #readable}, and takes it away, so that it is read once. */
    public Optional<R> take(Path folder, int rank) {
        Path file = path(folder, rank);
        if (!Files.exists(file)) {
            return Optional.empty();
        }
        try {
            Path taken = file.resolveSibling(file.getFileName() + ".taken");
            Files.move(file, taken, StandardCopyOption.ATOMIC_MOVE);
            R record = RecordBytes.read(type, taken, mostBytes);
            Files.delete(taken);
            return Optional.of(record);
        } catch (IOException e) {
            notTold(e);
            return Optional.empty();
        }
    }
}
