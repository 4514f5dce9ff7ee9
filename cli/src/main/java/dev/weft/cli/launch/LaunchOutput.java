package dev.weft.cli.launch;

import dev.weft.cli.console.UsageException;
import java.io.Closeable;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import picocli.CommandLine.Option;

/**
 * Where the output of launched ranks goes: where this command's goes, to a file for each rank, or
 * both. Used by one thread.
 */
final class LaunchOutput implements Closeable {

    /** torchrun's number for standard output and standard error. */
    private static final String BOTH = "3";

    @Option(
            names = {"--log-dir", "--log_dir"},
            paramLabel = "DIR",
            description = "Write what rank R prints to DIR/rank-R.log, not here.")
    String folder;

    @Option(
            names = {"-t", "--tee"},
            paramLabel = "3",
            description = "With --log-dir: print it here, too, with [R] before each line.")
    String tee;

    @Option(
            names = {"-r", "--redirects"},
            paramLabel = "3",
            description = "With --log-dir: only write the files, which is the default.")
    String redirects;

    @Option(names = "--prefix", description = "Put the rank before each printed line, as [R].")
    boolean prefix;

    private final List<Closeable> open = new ArrayList<>();

    boolean isSet() {
        return folder != null || tee != null || redirects != null || prefix;
    }

    /** Refuses what does not fit together, and creates the folder. */
    void prepare() {
        check("--tee", tee);
        check("--redirects", redirects);
        if (BOTH.equals(tee) && BOTH.equals(redirects)) {
            throw new UsageException("--tee 3 and --redirects 3: expected one of them");
        }
        if (folder == null) {
            return;
        }
        if (prefix && !BOTH.equals(tee)) {
            throw new UsageException(
                    "--prefix with --log-dir %s: nothing is printed here; expected --tee 3 as well",
                    folder);
        }
        try {
            Files.createDirectories(Path.of(folder));
        } catch (IOException e) {
            throw new UsageException(
                    "--log-dir %s: expected a folder that exists or can be created", folder);
        }
        if (folder.isEmpty() || !Files.isWritable(Path.of(folder))) {
            throw new UsageException("--log-dir %s: expected a folder to write to", folder);
        }
    }

    private void check(String option, String value) {
        if (value == null || value.equals("0")) {
            return;
        }
        if (!value.equals(BOTH)) {
            throw new UsageException(
                    "%s %s: expected 3, standard output and error, which share a file, or 0",
                    option, value);
        }
        if (folder == null) {
            throw new UsageException("%s %s: expected --log-dir DIR as well", option, value);
        }
    }

    /** The file for what a rank prints; null if there is none. */
    Path file(int rank) {
        return folder == null ? null : Path.of(folder, "rank-" + rank + ".log");
    }

    /** Starts a rank that writes there. */
    void start(
            RankProcesses processes,
            ProcessBuilder builder,
            int ranks,
            PrintWriter out,
            PrintWriter err)
            throws IOException {
        int rank = processes.count();
        builder.redirectInput(new File("/dev/null"));
        if (prefix || BOTH.equals(tee)) {
            Consumer<byte[]> log = folder == null ? some -> {} : log(rank);
            processes.start(
                    builder, ranks, log.andThen(lines(rank, out)), log.andThen(lines(rank, err)));
            return;
        }
        if (folder == null) {
            builder.redirectOutput(ProcessBuilder.Redirect.INHERIT);
            builder.redirectError(ProcessBuilder.Redirect.INHERIT);
        } else {
            // Emptied now: a rank that is started again goes on writing at its end.
            Files.newOutputStream(file(rank)).close();
            builder.redirectOutput(ProcessBuilder.Redirect.appendTo(file(rank).toFile()));
            builder.redirectErrorStream(true);
        }
        processes.start(builder, ranks);
    }

    private PrefixedLines lines(int rank, PrintWriter console) {
        PrefixedLines lines = new PrefixedLines(rank, console);
        open.add(lines);
        return lines;
    }

    private Consumer<byte[]> log(int rank) throws IOException {
        OutputStream log = new FileOutputStream(file(rank).toFile());
        open.add(log);
        return some -> {
            try {
                log.write(some);
            } catch (IOException e) {
                throw new UncheckedIOException(
                        "cannot write " + file(rank) + ": " + e.getMessage(), e);
            }
        };
    }

    @Override
    public void close() throws IOException {
        for (Closeable one : open) {
            one.close();
        }
    }
}
