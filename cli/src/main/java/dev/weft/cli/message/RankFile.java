package dev.weft.cli.message;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;

/**
 * A record that each rank's process writes to a file for the command that started it. Files are
 * replaced as a whole.
 *
 * @param variable the environment variable that asks a rank for it
 * @param name the name of the file, before the rank's number
 * @param mostBytes the most bytes that are read: any program may be started as a rank, and write
 *     there
 */
public record RankFile<R extends Record>(
        String variable, String name, Class<R> type, int mostBytes) {

    public Path path(Path folder, int rank) {
        return folder.resolve(name + "-" + rank);
    }

    /** Asks a rank that is about to be started for the record. */
    public void askFor(ProcessBuilder builder, Path folder, int rank) {
        builder.environment().put(variable, path(folder, rank).toString());
    }

    /** Whether this process was asked for it. */
    public boolean isAskedFor() {
        return System.getenv(variable) != null;
    }

    /** Writes the record if this process was asked for it. */
    public void write(R record) throws IOException {
        RecordBytes.write(record, Path.of(System.getenv(variable)));
    }

    /** Writes the record if this process was asked for it and can; returns whether it did. */
    public boolean tell(R record) {
        try {
            if (isAskedFor()) {
                write(record);
            }
            return isAskedFor();
        } catch (IOException e) {
            // For example, shared memory is full.
            return notTold(e);
        }
    }

    private boolean notTold(IOException e) {
        System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, name + " not told", e);
        return false;
    }

    /** What a rank has written. */
    public R read(Path folder, int rank) throws IOException {
        return RecordBytes.read(type, path(folder, rank), mostBytes);
    }

    /** What a rank has written; empty if it is missing, incomplete or something else. */
    public Optional<R> readable(Path folder, int rank) {
        try {
            return Files.exists(path(folder, rank))
                    ? Optional.of(read(folder, rank))
                    : Optional.empty();
        } catch (IOException e) {
            // A rank may be killed while it writes: everything else that is known about it matters
            // more.
            notTold(e);
            return Optional.empty();
        }
    }

    /** Like {@link #readable}, and removes the file, so that it is read once. */
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
