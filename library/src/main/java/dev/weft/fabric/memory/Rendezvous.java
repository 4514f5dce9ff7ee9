package dev.weft.fabric.memory;

import dev.weft.fabric.FabricException;
import dev.weft.fabric.FabricException.PeerLostException;
import dev.weft.fabric.FabricException.StallException;
import dev.weft.files.PrivateFiles;
import dev.weft.process.WaitTime;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntPredicate;

/**
 * Turns processes that know only a folder, their number and the number of ranks into ranks. Each
 * takes its lock, creates its control block under a temporary name and renames it, maps the blocks
 * of all others, passes a barrier and unlinks its own. From then on the folder holds only locks.
 * Ranks of another run or another build are refused.
 */
final class Rendezvous implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger("dev.weft");

    private static final long POLL_NS = 2_000_000;

    private final Path folder;
    private final int rank;
    private final int ranks;
    private final Duration deadline;
    private final RunToken token;
    private final HeldLock lock;
    private final Arena arena = Arena.ofShared();
    private final HeldLock.Watch[] watches;
    private MemorySegment own;

    /** When peers were last polled, and how long they have been waited for. */
    private long lookedNs;

    private long waitedNs;

    /** Null if ranks join without a starter. */
    private StarterWatch starter;

    private Rendezvous(Path folder, int rank, int ranks, RunToken token, Duration deadline)
            throws IOException {
        this.rank = rank;
        this.ranks = ranks;
        this.token = token;
        this.deadline = deadline;
        this.watches = new HeldLock.Watch[ranks];
        try {
            this.folder =
                    token.isSet() ? PrivateFiles.existing(folder) : PrivateFiles.folder(folder);
        } catch (NoSuchFileException e) {
            if (token.isSet()) {
                throw StarterWatch.gone(folder);
            }
            throw e;
        }
        this.lock = HeldLock.take(ShmJob.lockFile(folder, rank));
        if (lock == null) {
            throw new IllegalArgumentException(
                    "rank " + rank + " is taken by another process in " + folder);
        }
    }

    /**
     * Joins and returns the world's fabric; closing it also leaves the folder.
     *
     * @param token the starter's, which has made the folder; none if there is no starter
     */
    static ShmFabric join(Path folder, int rank, int ranks, RunToken token, Duration deadline) {
        try {
            Rendezvous rendezvous = new Rendezvous(folder, rank, ranks, token, deadline);
            try {
                return rendezvous.join();
            } catch (IOException | RuntimeException e) {
                rendezvous.abandon(e);
                throw e;
            }
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "rank " + rank + " cannot join in " + folder + ": " + e.getMessage(), e);
        }
    }

    /** Tells the peers that have arrived so far why this rank does not join. */
    private void abandon(Exception cause) {
        try (this) {
            if (starter != null) {
                // Its thread could fail this block too.
                starter.stop();
            }
            // The first cause stays.
            if (own != null
                    && Words.intAcquire(own, ControlBlock.STATE_AT) != ControlBlock.FAILED) {
                int causeRank = cause instanceof FabricException e ? e.peer() : rank;
                ControlBlock.fail(own, causeRank, String.valueOf(cause.getMessage()));
            }
        } catch (UncheckedIOException e) {
            cause.addSuppressed(e);
        }
    }

    private ShmFabric join() throws IOException {
        if (token.isSet()) {
            starter = new StarterWatch(ShmJob.starterFolder(folder));
            starter.requireStarter();
        }
        offerControlBlock();
        MemorySegment[] whole = new MemorySegment[ranks];
        lookedNs = System.nanoTime();
        for (int peer = 0; peer < ranks; peer++) {
            whole[peer] = awaitPeer(peer);
            long header = Math.min(MemoryRegion.HEADER_BYTES, whole[peer].byteSize());
            checkPeer(peer, whole[peer].asSlice(header));
        }
        MemoryRegion control = new MemoryRegion(whole, this::close);
        IntPredicate alive = peer -> peer == rank || watches[peer].isHeld();
        Health health = new Health(control, ranks, rank, alive, deadline);
        ShmFabric fabric = ShmFabric.world(rank, control, health, folder);
        if (starter != null) {
            starter.guard(fabric);
        }
        fabric.barrier();
        Files.delete(ShmJob.controlFile(folder, rank));
        return fabric;
    }

    private void checkPeer(int peer, MemorySegment block) {
        String mismatch = ControlBlock.mismatch(block, ranks, token, BuildId.current());
        if (mismatch != null) {
            throw new IllegalArgumentException(
                    "the control block of rank %s, %s, %s"
                            .formatted(peer, ShmJob.controlFile(folder, peer), mismatch));
        }
    }

    private void offerControlBlock() throws IOException {
        Path temporary = folder.resolve("rank-" + rank + ".control-new");
        Files.deleteIfExists(temporary);
        SharedParts.reserve(temporary, ControlBlock.BYTES + MemoryRegion.HEADER_BYTES);
        own = SharedParts.map(temporary, arena).asSlice(MemoryRegion.HEADER_BYTES);
        ControlBlock.identify(own, token, BuildId.current());
        ControlBlock.initialise(own, ranks);
        Files.move(
                temporary,
                ShmJob.controlFile(folder, rank),
                StandardCopyOption.ATOMIC_MOVE,
                StandardCopyOption.REPLACE_EXISTING);
    }

    /** Waits for the peer's control block, which counts only while its owner holds its lock. */
    private MemorySegment awaitPeer(int peer) throws IOException {
        while (true) {
            try {
                if (peer == rank || isPresent(peer)) {
                    return SharedParts.map(ShmJob.controlFile(folder, peer), arena);
                }
            } catch (NoSuchFileException e) {
                // Not there yet, or its owner has just given up: wait in both cases.
                LOG.log(Level.TRACE, "rank {0} is not there", peer);
            }
            if (starter != null) {
                starter.requireStarter();
            }
            if (ShmJob.hasEnded(folder, peer)) {
                throw new PeerLostException(rank, peer, "ended", "its arrival");
            }
            long now = System.nanoTime();
            waitedNs += WaitTime.counted(lookedNs, now);
            lookedNs = now;
            if (waitedNs > WaitTime.nanoseconds(deadline)) {
                throw new StallException(
                        rank, peer, -1, -1, "the arrival of rank " + peer, deadline);
            }
            LockSupport.parkNanos(POLL_NS);
        }
    }

    private boolean isPresent(int peer) throws IOException {
        // Its control block comes after its lock: looking at a lock that its owner is about to take
        // could make the owner fail.
        if (!Files.exists(ShmJob.controlFile(folder, peer))) {
            return false;
        }
        if (watches[peer] == null) {
            watches[peer] = new HeldLock.Watch(ShmJob.lockFile(folder, peer));
        }
        if (watches[peer].isHeld()) {
            return true;
        }
        // Next time, the file with this name may be another one.
        watches[peer].close();
        watches[peer] = null;
        return false;
    }

    @Override
    public void close() {
        try {
            boolean abandoned = starter != null && starter.isGone();
            if (starter != null) {
                starter.close();
            }
            Files.deleteIfExists(ShmJob.controlFile(folder, rank));
            for (HeldLock.Watch watch : watches) {
                if (watch != null) {
                    watch.close();
                }
            }
            Files.deleteIfExists(ShmJob.lockFile(folder, rank));
            lock.close();
            arena.close();
            if (abandoned) {
                ShmJob.removeIfLeft(ShmJob.starterFolder(folder));
            } else if (ShmJob.isTorchrun(folder)) {
                ShmJob.removeIfEmpty(folder);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("rank " + rank + " cannot leave " + folder, e);
        }
    }
}
