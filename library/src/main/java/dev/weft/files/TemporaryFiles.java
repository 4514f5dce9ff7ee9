package dev.weft.files;

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
 * The part files that are in the making: {@code .weft-<process>-<system>-<random>.part}. Those of
 * this process are removed when it is told to end, those of a process that is gone by whoever
 * writes into their folder next. Nothing else has such a name. Any thread may call it.
 */
public final class TemporaryFiles {

    private static final Pattern NAME =
            Pattern.compile("\\.weft-([0-9]{1,18})-([0-9a-f]{8})-[0-9a-f]{16}\\.part");

    /** Of earlier versions, which did not tell the process. */
    private static final Pattern FIRST_NAME =
            Pattern.compile("\\.weft-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\.part");

    /** No write takes as long; processes of other systems cannot be asked. */
    private static final Duration OLD = Duration.ofDays(1);

    /** How exactly a system knows when a process was started. */
    private static final Duration CLOCKS = Duration.ofMinutes(1);

    private static final long PID = ProcessHandle.current().pid();

    /** The same for processes that see each other. */
    private static final String SYSTEM = String.format("%08x", PidNamespace.current().hashCode());

    /** In the making here; guarded by this class, as all below. */
    private static final Set<Path> HERE = new HashSet<>();

    private static final Set<Path> LOOKED_AT = new HashSet<>();
    private static final Set<Path> WATCHED = new HashSet<>();
    private static boolean hooked;

    /** Told to end: what is not renamed by now never will be. */
    private static boolean ended;

    private TemporaryFiles() {}

    static String newName() {
        long random = ThreadLocalRandom.current().nextLong();
        return String.format(".weft-%d-%s-%016x.part", PID, SYSTEM, random);
    }

    static synchronized FileChannel create(Path part, FileAttribute<?>... attributes)
            throws IOException {
        refuseIfEnded();
        if (!hooked) {
            try {
                Runtime.getRuntime()
                        .addShutdownHook(new Thread(TemporaryFiles::end, "weft-remove-part-files"));
            } catch (IllegalStateException e) {
                throw new IOException("this process has been told to end", e);
            }
            hooked = true;
        }
        FileChannel channel =
                FileChannel.open(
                        part,
                        Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
                        attributes);
        HERE.add(part);
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
        HERE.remove(part);
    }

    /** Does nothing if it was renamed, or never made. */
    static synchronized void discard(Path part) throws IOException {
        if (HERE.remove(part)) {
            Files.deleteIfExists(part);
        }
    }

    private static synchronized void end() {
        ended = true;
        HERE.forEach(TemporaryFiles::delete);
    }

    private static void delete(Path part) {
        try {
            Files.deleteIfExists(part);
        } catch (IOException e) {
            debug("cannot remove " + part, e);
        }
    }

    /** Of a folder that is written to for the first time. */
    static void removeLeftOnce(Path folder) {
        synchronized (TemporaryFiles.class) {
            if (!LOOKED_AT.add(folder)) {
                return;
            }
        }
        removeLeft(folder);
    }

    /** Processes that this one starts will write there. */
    public static synchronized void watch(Path folder) {
        WATCHED.add(folder.toAbsolutePath());
    }

    /** Removes what processes that are gone have left in the watched folders. */
    public static void removeLeft() {
        List<Path> folders;
        synchronized (TemporaryFiles.class) {
            folders = List.copyOf(WATCHED);
        }
        folders.forEach(TemporaryFiles::removeLeft);
    }

    /** What cannot be removed is nobody's error: it is looked at again next time. */
    private static void removeLeft(Path folder) {
        try (DirectoryStream<Path> parts = Files.newDirectoryStream(folder, ".weft-*.part")) {
            for (Path part : parts) {
                if (isLeft(part)) {
                    Files.deleteIfExists(part);
                }
            }
        } catch (IOException | DirectoryIteratorException e) {
            debug("cannot look for part files in " + folder, e);
        }
    }

    private static boolean isLeft(Path part) throws IOException {
        String name = part.getFileName().toString();
        Matcher known = NAME.matcher(name);
        boolean ours = known.matches();
        if (!ours && !FIRST_NAME.matcher(name).matches()
                || !Files.isRegularFile(part, LinkOption.NOFOLLOW_LINKS)) {
            return false;
        }
        Instant written;
        try {
            written = Files.getLastModifiedTime(part).toInstant();
        } catch (NoSuchFileException e) {
            debug("finished meanwhile", e);
            return false;
        }
        if (ours && known.group(2).equals(SYSTEM)) {
            return isGone(Long.parseLong(known.group(1)), written);
        }
        return written.isBefore(Instant.now().minus(OLD));
    }

    /** Whether nobody lives who can have written then. */
    private static boolean isGone(long pid, Instant written) throws IOException {
        if (pid == PID) {
            return false;
        }
        ProcessHandle process = ProcessHandle.of(pid).orElse(null);
        return process == null
                || isZombie(pid)
                || process.info()
                        .startInstant()
                        .map(started -> started.minus(CLOCKS).isAfter(written))
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
