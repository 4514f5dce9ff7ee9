package dev.weft.fabric.memory;

import dev.weft.fabric.World;
import dev.weft.files.PrivateFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * A run of several processes on one host, seen from the process that starts them. It is a folder in
 * shared memory, private to the user, in which the ranks find each other; no port is opened. The
 * starter holds a lock in it, and ranks end when the starter is gone. A folder without a held lock
 * was left by a killed run and is removed by the next one. Used by one thread; any thread may close
 * it, more than once.
 */
public final class ShmJob implements AutoCloseable {

    static final String STARTER_LOCK = "starter.lock";

    /** Random bytes of a folder's name, so that it cannot be guessed. */
    private static final int NAME_BYTES = 16;

    /** With this much free, what cannot be created is a file, for want of inodes. */
    private static final long HEADROOM_BYTES = 1 << 16;

    /** Marks the name of a folder until its starter holds the lock in it. */
    private static final String UNFINISHED = "new-";

    /** Marks the name of a folder of ranks that a launcher such as torchrun has started. */
    private static final String TORCHRUN = "torchrun-";

    /** Begins the name of the folder of a world of a starter that starts ranks again. */
    private static final String WORLD = "world-";

    /** How long a starter may take from creating its folder to holding the lock in it. */
    private static final Duration GRACE = Duration.ofMinutes(1);

    private final Path folder;
    private final HeldLock lock;
    private final RunToken token = RunToken.random();

    /** Where ranks meet: the folder, or one within it. */
    private Path meeting;

    private boolean closed;

    private ShmJob(Path folder, HeldLock lock) {
        this.folder = folder;
        this.lock = lock;
        this.meeting = folder;
    }

    /** Creates a folder, after removing what killed runs have left. */
    public static ShmJob create() {
        return create(sharedMemory());
    }

    static ShmJob create(Path chosen) {
        Path shared = null;
        try {
            shared = PrivateFiles.guarded(chosen);
            String prefix = userPrefix();
            cleanStale(shared, prefix);
            byte[] random = new byte[NAME_BYTES];
            new SecureRandom().nextBytes(random);
            String name = HexFormat.of().formatHex(random);
            Path unfinished = PrivateFiles.folder(shared.resolve(prefix + UNFINISHED + name));
            HeldLock lock = HeldLock.take(unfinished.resolve(STARTER_LOCK));
            if (lock == null) {
                throw new IOException("the lock in the new folder " + unfinished + " is taken");
            }
            // Renamed only now: another run that cleans up must not find the lock free.
            Path folder =
                    Files.move(
                            unfinished,
                            shared.resolve(prefix + name),
                            StandardCopyOption.ATOMIC_MOVE);
            return new ShmJob(folder, lock);
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "cannot prepare shared memory: " + e.getMessage() + room(shared, e), e);
        }
    }

    /** What to do if there is no room for the folder and the lock in it; empty otherwise. */
    private static String room(Path shared, IOException e) {
        try {
            boolean full = String.valueOf(e.getMessage()).contains(SharedParts.NO_SPACE);
            return full ? ": " + SharedParts.room(shared, HEADROOM_BYTES, e) : "";
        } catch (IOException unknown) {
            e.addSuppressed(unknown);
            return "";
        }
    }

    /** The folder for shared memory; it is in memory if the system has such a folder. */
    public static Path sharedMemory() {
        String chosen = System.getenv("WEFT_SHM_DIR");
        if (chosen != null && !chosen.isEmpty()) {
            return Path.of(chosen);
        }
        Path shm = Path.of("/dev/shm");
        return Files.isDirectory(shm) ? shm : Path.of(System.getProperty("java.io.tmpdir"));
    }

    /** The prefix of the names of this user's folders. */
    private static String userPrefix() throws IOException {
        return "weft-" + PrivateFiles.user() + "-";
    }

    /**
     * Where ranks that a launcher such as torchrun has started meet. The first of them creates the
     * folder, the last one removes it.
     *
     * @param run any text that distinguishes the run from others
     */
    static Path torchrunFolder(String run) {
        try {
            byte[] digest =
                    MessageDigest.getInstance("SHA-256")
                            .digest(run.getBytes(StandardCharsets.UTF_8));
            String name = HexFormat.of().formatHex(digest, 0, NAME_BYTES);
            return sharedMemory().resolve(userPrefix() + TORCHRUN + name);
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every Java has SHA-256", e);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot prepare shared memory: " + e.getMessage(), e);
        }
    }

    /** Whether the ranks themselves have made the folder, in shared memory. */
    static boolean isTorchrun(Path folder) {
        return folder.getFileName().toString().contains("-" + TORCHRUN);
    }

    /** Whether a starter has made the folder, and not ranks that join without one. */
    static boolean hasStarter(Path folder) {
        return Files.exists(folder.resolve(STARTER_LOCK), LinkOption.NOFOLLOW_LINKS);
    }

    /** The starter's folder, in which ranks meet or which has one for each of their worlds. */
    static Path starterFolder(Path meeting) {
        return meeting.getFileName().toString().startsWith(WORLD) ? meeting.getParent() : meeting;
    }

    /** Whether the starter knows that the rank's process has ended. */
    static boolean hasEnded(Path folder, int rank) {
        return Files.exists(endedFile(folder, rank), LinkOption.NOFOLLOW_LINKS);
    }

    private static Path endedFile(Path folder, int rank) {
        return folder.resolve("rank-" + rank + ".ended");
    }

    public static Path lockFile(Path folder, int rank) {
        return folder.resolve("rank-" + rank + ".lock");
    }

    public static Path controlFile(Path folder, int rank) {
        return folder.resolve("rank-" + rank + ".control");
    }

    /** Notes that the process of a rank has ended, for ranks that still wait for it to join. */
    public void ended(int rank) {
        try {
            PrivateFiles.create(endedFile(meeting, rank)).close();
        } catch (IOException e) {
            // No space, or no file handles: the ranks notice at their deadline.
            System.getLogger("dev.weft")
                    .log(Level.DEBUG, "the end of rank {0} is not told: {1}", rank, e);
        }
    }

    /** Removes what killed runs of this user have left in shared memory. */
    public static void removeStale() throws IOException {
        cleanStale(sharedMemory(), userPrefix());
    }

    private static void cleanStale(Path shared, String prefix) throws IOException {
        for (Path folder : list(shared)) {
            // Leave a folder with such a name alone if another user has created it.
            if (folder.getFileName().toString().startsWith(prefix)
                    && PrivateFiles.isPrivateFolder(folder)
                    && isStale(folder, prefix)) {
                System.getLogger("dev.weft")
                        .log(Level.DEBUG, "removing {0}, left by a killed start", folder);
                delete(folder);
            }
        }
    }

    private static boolean isStale(Path folder, String prefix) throws IOException {
        boolean unlocked = folder.getFileName().toString().startsWith(prefix + UNFINISHED);
        // In both cases the first lock comes a moment after the folder.
        if ((unlocked || isTorchrun(folder)) && isYoung(folder)) {
            return false;
        }
        // The starter's lock first: looking at a lock that a rank is about to take may make it
        // fail.
        return !isHeld(folder.resolve(STARTER_LOCK)) && !hasHeldLock(folder);
    }

    private static boolean hasHeldLock(Path folder) throws IOException {
        for (Path file : list(folder)) {
            if (isWorld(file)
                    ? hasHeldLock(file)
                    : file.toString().endsWith(".lock") && isHeld(file)) {
                return true;
            }
        }
        return false;
    }

    /** Whether a starter that starts ranks again has made the folder for one of their worlds. */
    private static boolean isWorld(Path file) {
        return file.getFileName().toString().startsWith(WORLD)
                && Files.isDirectory(file, LinkOption.NOFOLLOW_LINKS);
    }

    /** Ignores files that are not private: no rank has created them. */
    private static boolean isHeld(Path lock) throws IOException {
        return PrivateFiles.isPrivateFile(lock) && HeldLock.isHeld(lock);
    }

    private static boolean isYoung(Path folder) throws IOException {
        try {
            Instant changed = Files.getLastModifiedTime(folder).toInstant();
            return changed.isAfter(Instant.now().minus(GRACE));
        } catch (NoSuchFileException e) {
            return true; // another run has just finished it
        }
    }

    private static List<Path> list(Path folder) throws IOException {
        try (Stream<Path> entries = Files.list(folder)) {
            return entries.toList();
        } catch (NoSuchFileException e) {
            return List.of(); // another run removes stale folders at the same time
        }
    }

    private static void delete(Path folder) throws IOException {
        for (Path file : list(folder)) {
            if (isWorld(file)) {
                remove(file);
            } else {
                Files.deleteIfExists(file);
            }
        }
        Files.deleteIfExists(folder);
    }

    /** Removes the folder if it is empty: no rank is there or about to join. */
    static void removeIfEmpty(Path folder) throws IOException {
        try {
            Files.deleteIfExists(folder);
        } catch (DirectoryNotEmptyException e) {
            // A rank is still there, and will remove it.
            System.getLogger("dev.weft").log(Level.TRACE, "{0} is in use", folder);
        }
    }

    /** Removes the folder, unless another rank is still there, which will remove it. */
    static void removeIfLeft(Path folder) throws IOException {
        if (!hasHeldLock(folder)) {
            remove(folder);
        }
    }

    /** Removes the folder of a run whose starter has ended; others may do so at the same time. */
    public static void remove(Path folder) throws IOException {
        try {
            delete(folder);
        } catch (DirectoryNotEmptyException e) {
            // Meanwhile a rank has created one more file.
            delete(folder);
        }
    }

    /** The folder through which the ranks find each other. */
    public Path folder() {
        return folder;
    }

    /** The folder for a world of ranks that are started again; they do not know its number. */
    Path world(int number) {
        return folder.resolve(WORLD + number);
    }

    /** From now on, ranks meet there. */
    void meetIn(Path world) {
        meeting = world;
    }

    /** The environment variables that make a process rank {@code rank} ({@link World#joined}). */
    public Map<String, String> environment(int rank, int ranks, Duration deadline) {
        Map<String, String> environment = new LinkedHashMap<>();
        environment.put(RankEnvironment.RANK, Integer.toString(rank));
        environment.put(RankEnvironment.RANKS, Integer.toString(ranks));
        environment.put(RankEnvironment.FOLDER, folder.toString());
        environment.put(RankEnvironment.DEADLINE_MS, Long.toString(deadline.toMillis()));
        environment.put(RankEnvironment.TOKEN, token.hex());
        return environment;
    }

    /** Removes the folder and whatever dead ranks have left in it; does nothing the second time. */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        try {
            // First: if file handles run short, listing the folder needs this one.
            lock.close();
            remove(folder);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot remove " + folder, e);
        }
    }
}
