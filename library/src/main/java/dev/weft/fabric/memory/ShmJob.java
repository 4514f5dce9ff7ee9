package dev.weft.fabric.memory;

import dev.weft.fabric.World;
import dev.weft.files.PrivateFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * A start of several processes on one host: a folder in shared memory, private to the user, in
 * which the ranks find each other. No port is opened. The starter holds a lock in it and ranks end
 * when it is gone; a folder none of whose locks is held was left by a killed start and is cleaned
 * by the next one. Used by one thread, but any may close it, and more than once.
 */
public final class ShmJob implements AutoCloseable {

    static final String STARTER_LOCK = "starter.lock";
    private static final String ENDED = ".ended";

    /** Names of folders cannot be guessed. */
    private static final int NAME_BYTES = 16;

    /** The name of a folder until its starter holds the lock in it. */
    private static final String UNFINISHED = "new-";

    /** How long a start may take from making its folder to holding the lock in it. */
    private static final Duration GRACE = Duration.ofMinutes(1);

    private final Path folder;
    private final HeldLock lock;
    private final RunToken token = RunToken.random();
    private boolean closed;

    private ShmJob(Path folder, HeldLock lock) {
        this.folder = folder;
        this.lock = lock;
    }

    /** A fresh folder; first removes what killed starts have left. */
    public static ShmJob create() {
        return create(sharedMemory());
    }

    static ShmJob create(Path chosen) {
        try {
            Path shared = PrivateFiles.guarded(chosen);
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
            // Renamed only now: another start, which cleans up, must not find the lock free.
            Path folder =
                    Files.move(
                            unfinished,
                            shared.resolve(prefix + name),
                            StandardCopyOption.ATOMIC_MOVE);
            return new ShmJob(folder, lock);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot prepare shared memory: " + e.getMessage(), e);
        }
    }

    /** Where regions live: memory-backed where the system has such a folder. */
    public static Path sharedMemory() {
        String chosen = System.getenv("WEFT_SHM_DIR");
        if (chosen != null && !chosen.isEmpty()) {
            return Path.of(chosen);
        }
        Path shm = Path.of("/dev/shm");
        return Files.isDirectory(shm) ? shm : Path.of(System.getProperty("java.io.tmpdir"));
    }

    /** What the names of all this user's folders start with. */
    private static String userPrefix() throws IOException {
        return "weft-" + PrivateFiles.user() + "-";
    }

    /** Whether a starter has made the folder, as opposed to ranks that meet without one. */
    static boolean hasStarter(Path folder) {
        return Files.exists(folder.resolve(STARTER_LOCK), LinkOption.NOFOLLOW_LINKS);
    }

    /** Whether the starter knows that the rank's process has ended. */
    static boolean hasEnded(Path folder, int rank) {
        return Files.exists(endedFile(folder, rank), LinkOption.NOFOLLOW_LINKS);
    }

    private static Path endedFile(Path folder, int rank) {
        return folder.resolve("rank-" + rank + ENDED);
    }

    /**
     * Tells the ranks that the process of one of them has ended, for those that still wait for it
     * to arrive.
     */
    public void ended(int rank) {
        try {
            PrivateFiles.create(endedFile(folder, rank)).close();
        } catch (IOException e) {
            // No room, or no handles: they notice at their deadline.
            System.getLogger("dev.weft")
                    .log(Level.DEBUG, "the end of rank {0} is not told: {1}", rank, e);
        }
    }

    /** Removes what killed starts of this user have left in shared memory. */
    public static void removeStale() throws IOException {
        cleanStale(sharedMemory(), userPrefix());
    }

    private static void cleanStale(Path shared, String prefix) throws IOException {
        for (Path folder : list(shared)) {
            // One that another user has put there under such a name is not touched.
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
        if (folder.getFileName().toString().startsWith(prefix + UNFINISHED) && isYoung(folder)) {
            return false;
        }
        // The starter's first: to look at a lock that a rank is about to take may make it fail.
        return !isHeld(folder.resolve(STARTER_LOCK)) && !hasHeldLock(folder);
    }

    private static boolean hasHeldLock(Path folder) throws IOException {
        for (Path file : list(folder)) {
            if (file.toString().endsWith(".lock") && isHeld(file)) {
                return true;
            }
        }
        return false;
    }

    /** What is not private was not made by a rank, and nobody's life depends on it. */
    private static boolean isHeld(Path lock) throws IOException {
        return PrivateFiles.isPrivateFile(lock) && HeldLock.isHeld(lock);
    }

    private static boolean isYoung(Path folder) throws IOException {
        try {
            Instant changed = Files.getLastModifiedTime(folder).toInstant();
            return changed.isAfter(Instant.now().minus(GRACE));
        } catch (NoSuchFileException e) {
            return true; // another start has just finished it
        }
    }

    private static List<Path> list(Path folder) throws IOException {
        try (Stream<Path> entries = Files.list(folder)) {
            return entries.toList();
        } catch (NoSuchFileException e) {
            return List.of(); // another start removes stale folders at the same time
        }
    }

    private static void delete(Path folder) throws IOException {
        for (Path file : list(folder)) {
            Files.deleteIfExists(file);
        }
        Files.deleteIfExists(folder);
    }

    /**
     * Removes the folder of a start whose starter was killed; others may do so at the same time.
     */
    public static void remove(Path folder) throws IOException {
        deleteTwice(folder);
    }

    /** The same, unless a rank is still there, which will see to it. */
    static void removeIfLeft(Path folder) throws IOException {
        if (!hasHeldLock(folder)) {
            deleteTwice(folder);
        }
    }

    /** A rank that was dying may have made one more file after the first look. */
    private static void deleteTwice(Path folder) throws IOException {
        try {
            delete(folder);
        } catch (DirectoryNotEmptyException e) {
            delete(folder);
        }
    }

    /** The folder in which the ranks meet. */
    public Path folder() {
        return folder;
    }

    /** What a process needs in its environment to be rank {@code rank} ({@link World#joined}). */
    public Map<String, String> environment(int rank, int ranks, Duration deadline) {
        Map<String, String> environment = new LinkedHashMap<>();
        environment.put(RankEnvironment.RANK, Integer.toString(rank));
        environment.put(RankEnvironment.RANKS, Integer.toString(ranks));
        environment.put(RankEnvironment.FOLDER, folder.toString());
        environment.put(RankEnvironment.DEADLINE_MS, Long.toString(deadline.toMillis()));
        environment.put(RankEnvironment.TOKEN, token.hex());
        return environment;
    }

    /** Removes the folder and whatever dead ranks have left in it; once closed, does nothing. */
    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        try {
            // First: where handles are short, the folder cannot be listed without this one.
            lock.close();
            deleteTwice(folder);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot remove " + folder, e);
        }
    }
}
