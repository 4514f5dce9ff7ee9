package dev.weft.fabric.memory;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Ranks that are processes of one host. Each part is a file in shared memory that every rank maps.
 * Its owner unlinks it as soon as all have mapped it, so that nothing is left however the processes
 * end.
 */
final class ShmFabric extends MemoryFabric {

    private final Path folder;

    /** One for every region that this rank still maps; shared with the fabrics of subgroups. */
    private final Set<Arena> mapped;

    private ShmFabric(Membership membership, Path folder, Set<Arena> mapped) {
        super(membership);
        this.folder = folder;
        this.mapped = mapped;
    }

    static ShmFabric world(int rank, MemoryRegion control, Health health, Path folder) {
        Membership all = Membership.ofWorld(rank, control, health);
        return new ShmFabric(all, folder, ConcurrentHashMap.newKeySet());
    }

    @Override
    public String kind() {
        return "processes";
    }

    @Override
    protected MemoryFabric subgroup(Membership membership) {
        return new ShmFabric(membership, folder, mapped);
    }

    @Override
    protected MemoryRegion allocateParts(String name, long bytesWithHeader) {
        Arena arena = Arena.ofShared();
        try {
            MemorySegment[] whole = new MemorySegment[size()];
            SharedParts parts = new SharedParts(this, folder, name);
            BitSet all = new BitSet();
            all.set(0, size());
            parts.map(bytesWithHeader, all, whole, arena);
            mapped.add(arena);
            return new MemoryRegion(whole, () -> unmap(arena));
        } catch (RuntimeException e) {
            arena.close();
            throw e;
        }
    }

    private void unmap(Arena arena) {
        if (mapped.remove(arena)) {
            arena.close();
        }
    }

    /** Also unmaps the regions that a failure has left mapped. */
    @Override
    public void close() {
        super.close();
        if (isWorld()) {
            mapped.forEach(this::unmap);
        }
    }
}
