package dev.weft.files;

import dev.weft.process.PidNamespace;
import dev.weft.process.ShutdownHooks;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.time.Duration;
import java.time.Instant;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Temporary files, which are later renamed. Their names are {@code
 * .weft-<process>-<namespace>-<random>.part}. Those of this process are removed when it is told to
 * end; those of a process that is gone are removed by the next one that writes to their folder.
 * Thread-safe.
 */
public final class TemporaryFiles {

    private static final Pattern NAME =
            Pattern.compile("\\.weft-([0-9]{1,18})-([0-9a-f]{8})-[0-9a-f]{16}\\.part");

    /** No write takes this long. Used if it is not known whether the process lives. */
    private static final Duration STALE_AGE = Duration.ofDays(1);

    /** How exactly the start time of a process is known. */
    private static final Duration START_TOLERANCE = Duration.ofMinutes(1);

    private static final long PID = ProcessHandle.current().pid();

    /** Identifies the namespace of process ids. */
    private static final String NAMESPACE =
            String.format("%08x", PidNamespace.current().hashCode());

    /** Those of this process. All fields from here on are guarded by this class. */
    private static final Set<Path> OWN = new HashSet<>();

    private static final Set<Path> CLEANED = new HashSet<>();
    private static final Set<Path> WATCHED = new HashSet<>();
    private static boolean hooked;

    /** Whether this process was told to end: no file is renamed any more. */
    private static boolean ended;

    private TemporaryFiles() {}

    static String newName() {
        long random = ThreadLocalRandom.current().nextLong();
        return String.format(".weft-%d-%s-%016x.part", PID, NAMESPACE, random);
    }

    static synchronized FileChannel create(Path part, FileAttribute<?>... attributes)
            throws IOException {
        refuseIfEnded();
        if (!hooked) {
            hooked =
                    ShutdownHooks.add(
                            new Thread(TemporaryFiles::end, "weft-remove-temporary-files"));
            ended = !hooked;
            refuseIfEnded();
        }
        FileChannel channel =
                FileChannel.open(
                        part,
                        Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
                        attributes);
        OWN.add(part);
        return channel;
    }

    private static void refuseIfEnded() throws IOException {
        if (ended) {
            throw new IOException("this process has been told to end");
        }
    }

    static synchronized void rename(Path part, Path target) throws IOException {
        refuseIfEnded();
        Files.move(part, target, StandardCopyOption.ATOMIC_MOVE);
        OWN.remove(part);
    }

    /** Deletes a temporary file, unless it was renamed or never created. */
    static synchronized void discard(Path part) throws IOException {
        if (OWN.remove(part)) {
            Files.deleteIfExists(part);
        }
    }

    private static synchronized void end() {
        ended = true;
        OWN.forEach(TemporaryFiles::delete);
    }

    private static void delete(Path part) {
        try {
            Files.deleteIfExists(part);
        } catch (IOException e) {
            debug("cannot remove " + part, e);
        }
    }

    /** Cleans a folder when it is written to for the first time. */
    static void removeLeftOnce(Path folder) {
        synchronized (TemporaryFiles.class) {
            if (!CLEANED.add(folder)) {
                return;
            }
        }
        removeLeft(folder);
    }

    /** Notes a folder to which processes that this one starts will write. */
    public static synchronized void watch(Path folder) {
        WATCHED.add(folder.toAbsolutePath());
    }

    /** Removes the files of processes that are gone from the noted folders. */
    public static void removeLeft() {
        List<Path> folders;
        synchronized (TemporaryFiles.class) {
            folders = List.copyOf(WATCHED);
        }
        folders.forEach(TemporaryFiles::removeLeft);
    }

    /** Cleans a folder. Files that cannot be removed are tried again next time. */
    private static void removeLeft(Path folder) {
        try (DirectoryStream<Path> parts = Files.newDirectoryStream(folder, ".weft-*.part")) {
            for (Path part : parts) {
                if (isLeft(part)) {
                    Files.deleteIfExists(part);
                }
            }
        } catch (IOException | DirectoryIteratorException e) {
            debug("cannot look for temporary files in " + folder, e);
        }
    }

    private static boolean isLeft(Path part) throws IOException {
        String name = part.getFileName().toString();
        Matcher known = NAME.matcher(name);
        if (!known.matches() || !Files.isRegularFile(part, LinkOption.NOFOLLOW_LINKS)) {
            return false;
        }
        Instant written;
        try {
            written = Files.getLastModifiedTime(part).toInstant();
        } catch (NoSuchFileException e) {
            debug("finished meanwhile", e);
            return false;
        }
        if (known.group(2).equals(NAMESPACE)) {
            return isGone(Long.parseLong(known.group(1)), written);
        }
        return written.isBefore(Instant.now().minus(STALE_AGE));
    }

    /** Whether the process that wrote the file then is gone. */
    private static boolean isGone(long pid, Instant written) throws IOException {
        if (pid == PID) {
            return false;
        }
        ProcessHandle process = ProcessHandle.of(pid).orElse(null);
        return process == null
                || isZombie(pid)
                || process.info()
                        .startInstant()
                        .map(started -> started.minus(START_TOLERANCE).isAfter(written))
                        .orElse(false);
    }

    private static boolean isZombie(long pid) throws IOException {
        Path stat = Path.of("/proc", Long.toString(pid), "stat");
        try {
            String text = Files.readString(stat);
            return text.substring(text.lastIndexOf(')') + 1).startsWith(" Z");
        } catch (NoSuchFileException e) {
            debug("gone meanwhile, or another system", e);
            return false;
        }
    }

    private static void debug(String what, Exception e) {
        System.getLogger("dev.weft").log(Level.DEBUG, what, e);
    }
}
