package dev.weft.fabric.memory;

import dev.weft.ffi.LargePages;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Ranks that are threads of one JVM. Memory is freed once every rank has released it or has left
 * the world.
 */
public final class ThreadFabric extends MemoryFabric {

    private final Memory memory;

    /** The regions of one world. Thread-safe. */
    private static final class Memory {
        private final ConcurrentHashMap<String, Parts> gathering = new ConcurrentHashMap<>();
        private final Set<Parts> live = ConcurrentHashMap.newKeySet();
        private final AtomicInteger present;

        Memory(int ranks) {
            present = new AtomicInteger(ranks);
        }

        Parts parts(String name, int ranks) {
            return gathering.computeIfAbsent(
                    name,
                    key -> {
                        Parts parts = new Parts(ranks);
                        live.add(parts);
                        return parts;
                    });
        }

        void release(Parts parts) {
            if (parts.holders.decrementAndGet() == 0) {
                free(parts);
            }
        }

        /** Notes that a rank leaves. The last one frees what failed ranks have not released. */
        void leave() {
            if (present.decrementAndGet() == 0) {
                live.forEach(this::free);
            }
        }

        private void free(Parts parts) {
            if (live.remove(parts)) {
                parts.arena.close();
            }
        }
    }

    /** The parts of one region, and the number of ranks that still hold them. */
    private static final class Parts {
        final MemorySegment[] whole;
        final Arena arena = Arena.ofShared();
        final AtomicInteger holders;

        Parts(int ranks) {
            whole = new MemorySegment[ranks];
            holders = new AtomicInteger(ranks);
        }
    }

    private ThreadFabric(Membership membership, Memory memory) {
        super(membership);
        this.memory = memory;
    }

    /** The fabrics of a world, one per rank; the arena must outlive them. */
    public static ThreadFabric[] world(int ranks, Duration deadline, Arena arena) {
        MemorySegment[] blocks = new MemorySegment[ranks];
        for (int r = 0; r < ranks; r++) {
            blocks[r] =
                    arena.allocate(
                            ControlBlock.BYTES + MemoryRegion.HEADER_BYTES,
                            MemoryRegion.HEADER_BYTES);
        }
        Memory memory = new Memory(ranks);
        ThreadFabric[] fabrics = new ThreadFabric[ranks];
        for (int r = 0; r < ranks; r++) {
            MemoryRegion control = new MemoryRegion(blocks, memory::leave);
            ControlBlock.initialise(control.part(r), ranks);
            // A thread cannot die without its world noticing: World.run reports it as failed.
            Health health = new Health(control, ranks, r, peer -> true, deadline);
            fabrics[r] = new ThreadFabric(Membership.ofWorld(r, control, health), memory);
        }
        return fabrics;
    }

    @Override
    public String kind() {
        return "threads";
    }

    @Override
    protected MemoryFabric subgroup(Membership membership) {
        return new ThreadFabric(membership, memory);
    }

    @Override
    protected MemoryRegion allocateParts(String name, long bytesWithHeader) {
        Parts parts = memory.parts(name, size());
        // Each rank touches its own part first, so that the pages are near its thread.
        parts.whole[rank()] = LargePages.allocate(bytesWithHeader, parts.arena).fill((byte) 0);
        barrier();
        memory.gathering.remove(name);
        return new MemoryRegion(parts.whole, () -> memory.release(parts));
    }
}
