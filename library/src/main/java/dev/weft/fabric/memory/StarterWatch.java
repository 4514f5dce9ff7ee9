package dev.weft.fabric.memory;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/**
 * A rank's eye on the command that started it: a starter that is killed cannot end its ranks, so
 * each ends by itself. Within about a second of the starter's end every wait of this rank, and of
 * its peers, ends with an error that says so. Any thread may call.
 */
final class StarterWatch implements AutoCloseable {

    private static final long LOOK_MS = 1_000;

    private final Path folder;
    private final HeldLock.Watch lock;
    private boolean stopped;

    /**
     * @throws IllegalStateException if no starter has been there
     */
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

    /** Whether the starter has ended. Not to be asked once this is closed. */
    boolean isGone() {
        return !lock.isHeld();
    }

    /**
     * @throws IllegalStateException if the starter has ended
     */
    void requireStarter() {
        if (isGone()) {
            throw gone(folder);
        }
    }

    /** From now on the starter's end is a failure of {@code fabric}. */
    void guard(MemoryFabric fabric) {
        Thread.ofPlatform().daemon().name("weft-starter-watch").start(() -> look(fabric));
    }

    /** Under the lock, without which {@link #close} would let the fabric's memory go meanwhile. */
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

    /** From now on no fabric is failed by this. */
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
