package dev.weft.fabric.mpi;

import dev.weft.fabric.memory.ControlBlock;
import dev.weft.fabric.memory.Health;
import dev.weft.fabric.memory.HeldLock;
import dev.weft.fabric.memory.MemoryRegion;
import dev.weft.fabric.memory.SharedParts;
import dev.weft.fabric.memory.ShmJob;
import dev.weft.files.PrivateFiles;
import dev.weft.plan.Hosts;
import dev.weft.process.ShutdownHooks;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;

/**
 * What the ranks of one host share: a private folder that the first of them makes, a lock that each
 * holds for as long as it lives, and the world's control blocks, mapped for ranks of this host and
 * mirrored for others.
 */
final class MpiHost implements AutoCloseable {

    private final int rank;
    private final int first;
    private final ShmJob job;
    private final Path folder;
    private final HeldLock lock;
    private final HeldLock.Watch[] watches;
    private final Arena arena = Arena.ofShared();
    private final MemoryRegion control;

    /** Removes the folder when the process is told to end. */
    private final Thread hook;

    /**
     * @param job the job of the host's first rank; null on the others
     */
    private MpiHost(MpiBootstrap bootstrap, Hosts hosts, int rank, ShmJob job) throws IOException {
        this.rank = rank;
        this.job = job;
        this.hook = job == null ? null : new Thread(job::close, "weft-leave");
        if (job != null && !ShutdownHooks.add(hook)) {
            throw new IOException("this process has been told to end");
        }
        int host = hosts.hostOf(rank);
        this.first = hosts.first(host);
        int size = hosts.size(host);
        List<String> folders = bootstrap.texts(job == null ? "" : job.folder().toString());
        this.folder = PrivateFiles.existing(Path.of(folders.get(first)));
        this.lock = HeldLock.take(ShmJob.lockFile(folder, rank));
        if (lock == null) {
            throw new IOException("the lock of rank " + rank + " in " + folder + " is taken");
        }
        MemorySegment[] whole = new MemorySegment[hosts.ranks()];
        long bytes = ControlBlock.BYTES + MemoryRegion.HEADER_BYTES;
        SharedParts.reserve(ShmJob.controlFile(folder, rank), bytes);
        bootstrap.barrier();
        this.watches = new HeldLock.Watch[size];
        for (int r = first; r < first + size; r++) {
            whole[r] = SharedParts.map(ShmJob.controlFile(folder, r), arena);
            watches[r - first] = new HeldLock.Watch(ShmJob.lockFile(folder, r));
        }
        bootstrap.barrier();
        Files.delete(ShmJob.controlFile(folder, rank));
        MpiFabric.mirror(whole, arena);
        BitSet mapped = new BitSet();
        mapped.set(first, first + size);
        this.control = new MemoryRegion(MpiFabric.key("control"), mapped, whole, arena::close);
        for (int r = 0; r < hosts.ranks(); r++) {
            if (r == rank || !control.isMapped(r)) {
                ControlBlock.initialise(control.words(r), hosts.ranks());
            }
        }
        bootstrap.barrier();
    }

    /** Collective: joins the ranks of this host. */
    static MpiHost join(MpiBootstrap bootstrap, Hosts hosts, int rank) throws IOException {
        boolean isFirst = rank == hosts.first(hosts.hostOf(rank));
        ShmJob job = isFirst ? ShmJob.create() : null;
        try {
            return new MpiHost(bootstrap, hosts, rank, job);
        } catch (IOException | RuntimeException e) {
            if (job != null) {
                job.close();
            }
            throw e;
        }
    }

    Path folder() {
        return folder;
    }

    MemoryRegion control() {
        return control;
    }

    /** Whether the rank's process lives; true for ranks on other hosts, which cannot be checked. */
    boolean isAlive(int worldRank) {
        boolean here = control.isMapped(worldRank) && worldRank != rank;
        return !here || watches[worldRank - first].isHeld();
    }

    /** Another rank of this host that lives and has neither left nor failed, or -1. */
    int firstPresent(Health health) {
        return IntStream.range(first, first + watches.length)
                .filter(r -> r != rank && !health.hasEnded(r) && isAlive(r))
                .findFirst()
                .orElse(-1);
    }

    @Override
    public void close() {
        boolean firstIsGone = job == null && !watches[0].isHeld();
        try {
            for (HeldLock.Watch watch : watches) {
                watch.close();
            }
            Files.deleteIfExists(ShmJob.lockFile(folder, rank));
            lock.close();
            if (job != null) {
                job.close();
                ShutdownHooks.remove(hook);
            } else if (firstIsGone) {
                // The first rank was killed, or it would have removed the folder itself.
                ShmJob.remove(folder);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("rank " + rank + " cannot leave " + folder, e);
        }
    }
}
