package dev.weft.fabric.mpi;

import dev.weft.fabric.memory.BuildId;
import dev.weft.fabric.memory.Group;
import dev.weft.fabric.memory.MemoryFabric;
import dev.weft.fabric.memory.MemoryRegion;
import dev.weft.fabric.memory.SharedParts;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.CoreShare;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.RowGather;
import dev.weft.ffi.LargePages;
import dev.weft.plan.Hosts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;

/**
 * Ranks that MPI has started, on one host or many. Those of one host share memory, as processes do.
 * Words and rectangles for other hosts are sent by the progress thread.
 */
public final class MpiFabric extends MemoryFabric {

    private final MpiProcess process;
    private final MpiProgress progress;
    private final Hosts hosts;

    /** The ranks of the group whose memory this one shares. */
    private final BitSet local = new BitSet();

    private boolean left;

    MpiFabric(Membership membership, MpiProcess process, MpiProgress progress) {
        super(membership);
        this.process = process;
        this.progress = progress;
        Hosts world = process.hosts();
        this.hosts = hostsOf(world, group);
        for (int r = 0; r < group.size(); r++) {
            local.set(r, world.shareMemory(group.worldRank(r), worldRank(rank())));
        }
    }

    /**
     * The hosts of a group's ranks. If the ranks of one host are not consecutive in the group,
     * plans treat them as several hosts, which costs time but not correctness.
     */
    private static Hosts hostsOf(Hosts world, Group group) {
        return world.among(IntStream.range(0, group.size()).map(group::worldRank).boxed().toList());
    }

    @Override
    public String kind() {
        return "mpi";
    }

    @Override
    public Hosts hosts() {
        return hosts;
    }

    @Override
    public CoreShare cores() {
        return process.cores();
    }

    @Override
    public long ownCpuNs() {
        return progress.cpuNs();
    }

    @Override
    protected MemoryFabric subgroup(Membership membership) {
        return new MpiFabric(membership, process, progress);
    }

    @Override
    protected MemoryRegion allocateParts(String name, long bytesWithHeader) {
        Arena arena = Arena.ofShared();
        MemorySegment[] whole = new MemorySegment[size()];
        try {
            if (local.cardinality() == 1) {
                whole[rank()] = LargePages.allocate(bytesWithHeader, arena).fill((byte) 0);
                worked();
                // As ranks do that share their host with others.
                barrier();
                barrier();
            } else {
                new SharedParts(this, process.folder(), name)
                        .map(bytesWithHeader, local, whole, arena);
            }
            mirror(whole, arena);
        } catch (RuntimeException | Error e) {
            arena.close();
            throw e;
        }
        return register(key(name), whole, arena);
    }

    private MemoryRegion register(long key, MemorySegment[] whole, Arena arena) {
        MpiRegion[] known = new MpiRegion[1];
        MemoryRegion region = new MemoryRegion(key, local, whole, () -> progress.release(known[0]));
        known[0] = new MpiRegion(region, group, worldRank(rank()), arena::close);
        progress.regions.register(known[0]);
        try {
            // No rank writes before all know the region.
            barrier();
            return region;
        } catch (RuntimeException | Error e) {
            // Freed once no peer can write to it any more: a peer may have passed the barrier.
            region.close();
            throw e;
        }
    }

    /** Allocates mirrors for the words of ranks on other hosts. */
    static void mirror(MemorySegment[] whole, Arena arena) {
        for (int r = 0; r < whole.length; r++) {
            if (whole[r] == null) {
                whole[r] =
                        arena.allocate(
                                MemoryRegion.HEADER_BYTES + Region.WORDS_BYTES,
                                MemoryRegion.HEADER_BYTES);
            }
        }
    }

    /** The key by which ranks on several hosts know the region with this name. */
    static long key(String name) {
        return BuildId.digest(name);
    }

    @Override
    protected void sendWord(MemoryRegion region, int home, long offset, int value) {
        MpiChannel channel = progress.channel(worldRank(home));
        channel.send(MpiMessage.WORD, region.key(), offset, value, 0);
        progress.wake();
    }

    @Override
    protected void sendPublished(MemoryRegion region, long offset, int value) {
        sendToOtherHosts(MpiMessage.PUBLISHED, region, offset, value, 0);
        progress.wake();
    }

    @Override
    protected void sendValue(MemoryRegion region, long offset, long value) {
        sendToOtherHosts(MpiMessage.VALUE, region, offset, 0, value);
    }

    private void sendToOtherHosts(int kind, MemoryRegion region, long at, int value, long wide) {
        for (int r = 0; r < size(); r++) {
            if (!region.isMapped(r)) {
                progress.channel(worldRank(r)).send(kind, region.key(), at, value, wide);
            }
        }
    }

    /** Avoids blaming a rank that only forwards instead of one that sends nothing. */
    @Override
    protected int silentPeer() {
        long mostMs = health.deadlineNs() / 2_000_000;
        int[] silent =
                IntStream.range(0, size())
                        .map(group::worldRank)
                        .filter(worldRank -> silentMs(worldRank) > mostMs)
                        .toArray();
        return silent.length == 1 ? silent[0] : -1;
    }

    @Override
    protected long silentMs(int worldRank) {
        return progress.silentMs(worldRank);
    }

    @Override
    public ChunkMover mover(IntConsumer ended) {
        return hosts.count() == 1 ? super.mover(ended) : new MpiChunkMover(this, progress, ended);
    }

    @Override
    public RowGather rowGather() {
        // Only for the whole world in its own order: a subgroup would need another communicator.
        return group.isWorld(worldSize()) ? process.rowGather(this) : null;
    }

    @Override
    public void close() {
        if (isWorld()) {
            if (!left) {
                left = true;
                process.leave(this);
            }
        } else {
            super.close();
        }
    }

    /** Frees the control blocks; called by the process once no peer needs this rank any more. */
    void closeControl() {
        super.close();
    }
}
