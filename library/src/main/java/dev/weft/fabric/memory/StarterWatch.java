package dev.weft.fabric.memory;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/**
 * Watches, in a rank, the command that started it. A killed starter cannot stop its ranks, so they
 * stop on their own: within about a second every wait of this rank, and of its peers, ends with an
 * error that says so. Thread-safe.
 */
final class StarterWatch implements AutoCloseable {

    private static final long LOOK_MS = 1_000;

    private final Path folder;
    private final HeldLock.Watch lock;
    private boolean stopped;

    StarterWatch(Path folder) throws IOException {
        this.folder = folder;
        try {
            this.lock = new HeldLock.Watch(folder.resolve(ShmJob.STARTER_LOCK));
        } catch (NoSuchFileException e) {
            throw gone(folder);
        }
    }

    static IllegalStateException gone(Path folder) {
        return new IllegalStateException(
                "the command that started this rank is gone: nobody holds "
                        + folder.resolve(ShmJob.STARTER_LOCK));
    }

    /** Whether the starter has ended. Not to be called after the close. */
    boolean isGone() {
        return !lock.isHeld();
    }

    void requireStarter() {
        if (isGone()) {
            throw gone(folder);
        }
    }

    /** Fails {@code fabric} when the starter ends. */
    void guard(MemoryFabric fabric) {
        Thread.ofPlatform().daemon().name("weft-starter-watch").start(() -> look(fabric));
    }

    /** Synchronized, so that {@link #close} does not free the fabric's memory meanwhile. */
    private synchronized void look(MemoryFabric fabric) {
        while (!stopped) {
            try {
                requireStarter();
                wait(LOOK_MS);
            } catch (RuntimeException e) {
                fabric.fail(e);
                return;
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
        }
    }

    /** Stops watching. */
    synchronized void stop() {
        stopped = true;
        notifyAll();
    }

    @Override
    public synchronized void close() {
        stop();
        try {
            lock.close();
        } catch (IOException e) {
            throw new UncheckedIOException("cannot close the starter's lock", e);
        }
    }
}
