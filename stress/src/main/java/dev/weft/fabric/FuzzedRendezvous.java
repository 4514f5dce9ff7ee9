package dev.weft.fabric;

import dev.weft.fabric.FabricException.StallException;
import dev.weft.fabric.memory.HeldLock;
import dev.weft.fabric.memory.ShmJob;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/**
 * A rank that joins a peer whose control file is whatever the fuzzer makes of it. The peer's lock
 * is held, so the file counts as that of a live process. For one thread.
 */
public final class FuzzedRendezvous implements AutoCloseable {

    private static final Duration DEADLINE = Duration.ofSeconds(20);

    /** The peer never signals: a file that is accepted ends in a stall this soon. */
    private static final Duration SHORT = Duration.ofMillis(1);

    private final ShmJob job = ShmJob.create();
    private final Path control = job.folder().resolve("rank-1.control");
    private final byte[] genuine;
    private final HeldLock lock;

    public FuzzedRendezvous() throws IOException, InterruptedException {
        genuine = controlOfRendezvous();
        lock = HeldLock.take(job.folder().resolve("rank-1.lock"));
    }

    /** What two ranks that really meet lay down, so that it is of this build and this job. */
    private byte[] controlOfRendezvous() throws IOException, InterruptedException {
        Thread peer = Thread.ofPlatform().daemon().start(() -> join(job, 1));
        while (!Files.exists(control) && peer.isAlive()) {
            LockSupport.parkNanos(1_000_000);
        }
        // Whole from the start: it takes its name when it is written, and waits for rank 0.
        byte[] bytes = Files.readAllBytes(control);
        join(job, 0);
        peer.join();
        return bytes;
    }

    /** What a rank throws whose peer does nothing. */
    public Throwable stall() throws IOException {
        try {
            joinWith(genuine);
            throw new IllegalStateException("a peer that does nothing was met");
        } catch (StallException e) {
            return e;
        }
    }

    /** A control file that was accepted. */
    public byte[] genuine() {
        return genuine.clone();
    }

    private static void join(ShmJob job, int rank) {
        World.joined(job.environment(rank, 2, DEADLINE)).close();
    }

    /** What a rank is told about itself, a line for each variable. */
    public static String environment() {
        try (ShmJob job = ShmJob.create()) {
            StringBuilder lines = new StringBuilder();
            job.environment(0, 2, Duration.ofMillis(500))
                    .forEach(
                            (name, value) ->
                                    lines.append(name).append('=').append(value).append('\n'));
            return lines.toString();
        }
    }

    /** Joins as rank 0, with this as the file of rank 1. */
    public void join(byte[] controlOfPeer) throws IOException {
        try {
            joinWith(controlOfPeer);
        } catch (StallException e) {
            if (e.peer() != 1) {
                throw e;
            }
            // The file was accepted; that its owner does nothing more is what it has to say.
        }
    }

    private void joinWith(byte[] controlOfPeer) throws IOException {
        Files.deleteIfExists(control);
        Files.createFile(
                control,
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        Files.write(control, controlOfPeer);
        World.joined(job.environment(0, 2, SHORT)).close();
    }

    /**
     * Joins as the environment says, in a folder that cannot be one: so far as numbers and texts
     * are wrong they are refused before.
     */
    public static void join(Map<String, String> environment) {
        World.joined(environment).close();
    }

    @Override
    public void close() throws IOException {
        lock.close();
        job.close();
    }
}
