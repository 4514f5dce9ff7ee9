package dev.weft.fabric.memory;

import dev.weft.files.PrivateFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.HashSet;
import java.util.Set;

/**
 * A lock on a file that a process holds for as long as it lives. The system releases it however the
 * process ends, so a free lock shows that its process is gone. Thread-safe.
 */
public final class HeldLock implements AutoCloseable {

    /**
     * The lock files that this process holds, by device and inode. They are not opened again: when
     * a process closes any channel to a file, the system drops all its locks on that file.
     */
    private static final Set<Object> HELD_HERE = new HashSet<>();

    private final FileChannel channel;
    private final Object key;

    private HeldLock(FileChannel channel, Object key) {
        this.channel = channel;
        this.key = key;
    }

    /** Creates the file if need be and takes its lock; null if it is held. */
    public static HeldLock take(Path file) throws IOException {
        synchronized (HELD_HERE) {
            if (isHeldHere(file)) {
                return null;
            }
            FileChannel channel = createOrOpen(file);
            HeldLock held = null;
            try {
                if (channel.tryLock() != null) {
                    held = new HeldLock(channel, key(file));
                    HELD_HERE.add(held.key);
                }
                return held;
            } finally {
                if (held == null) {
                    channel.close();
                }
            }
        }
    }

    private static FileChannel createOrOpen(Path file) throws IOException {
        try {
            return PrivateFiles.create(file);
        } catch (FileAlreadyExistsException e) {
            return PrivateFiles.open(file, StandardOpenOption.WRITE);
        }
    }

    private static Object key(Path file) throws IOException {
        return Files.readAttributes(file, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS)
                .fileKey();
    }

    private static boolean isHeldHere(Path file) throws IOException {
        try {
            return HELD_HERE.contains(key(file));
        } catch (NoSuchFileException e) {
            return false;
        }
    }

    @Override
    public void close() throws IOException {
        synchronized (HELD_HERE) {
            if (HELD_HERE.remove(key)) {
                channel.close();
            }
        }
    }

    /** A view of the lock of a peer. */
    public static final class Watch implements AutoCloseable {
        private final Object key;

        /** Null if this process itself holds the lock. */
        private final FileChannel channel;

        public Watch(Path file) throws IOException {
            synchronized (HELD_HERE) {
                key = key(file);
                channel =
                        HELD_HERE.contains(key)
                                ? null
                                : PrivateFiles.open(file, StandardOpenOption.READ);
            }
        }

        /** Whether the lock is held. Watches do not disturb each other. */
        public boolean isHeld() {
            synchronized (HELD_HERE) {
                if (channel == null || HELD_HERE.contains(key)) {
                    return HELD_HERE.contains(key);
                }
                // Shared, so that two simultaneous watches do not mistake each other for the owner.
                try (FileLock lock = channel.tryLock(0, Long.MAX_VALUE, true)) {
                    return lock == null;
                } catch (OverlappingFileLockException e) {
                    return true;
                } catch (IOException e) {
                    throw new UncheckedIOException("cannot look at a peer's lock", e);
                }
            }
        }

        @Override
        public void close() throws IOException {
            if (channel != null) {
                channel.close();
            }
        }
    }

    /** Whether the lock of {@code file} is held; false if the file is missing. */
    public static boolean isHeld(Path file) throws IOException {
        synchronized (HELD_HERE) {
            try (Watch watch = new Watch(file)) {
                return watch.isHeld();
            } catch (NoSuchFileException e) {
                return false;
            }
        }
    }
}
