package dev.weft.fabric;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Memory for very many small experiments: two ranks, and slots that are used again and again, each
 * time with the next epoch, as Weft's own words are. Making fresh memory for each experiment would
 * take longer than the experiment.
 */
final class Slots {

    /** More than the harness keeps alive at a time (256 x 40 experiments). */
    static final int COUNT = 1 << 14;

    private static final Arena ARENA = Arena.global();
    private static final ThreadFabric[] RANKS =
            ThreadFabric.world(2, Duration.ofSeconds(60), ARENA);

    private final AtomicLong taken = new AtomicLong();

    /** The slot of an experiment, by its number. */
    static int slot(long number) {
        return (int) (number % COUNT);
    }

    /** Grows by one each time that a slot is used again; words are zero before the first. */
    static int epoch(long number) {
        return (int) (number / COUNT) + 1;
    }

    /** The number of the next experiment. */
    long next() {
        return taken.getAndIncrement();
    }

    static Fabric rank(int rank) {
        return RANKS[rank];
    }

    /** A region of two parts with {@code bytesPerSlot} for each slot. */
    static MemoryRegion region(long bytesPerSlot) {
        MemorySegment[] parts = new MemorySegment[2];
        for (int r = 0; r < parts.length; r++) {
            parts[r] = part(COUNT * bytesPerSlot);
        }
        return new MemoryRegion(parts, () -> {});
    }

    /** A region with a part, and so a count of waiters, for each slot. */
    static MemoryRegion partPerSlot(long bytes) {
        MemorySegment[] parts = new MemorySegment[COUNT];
        for (int s = 0; s < parts.length; s++) {
            parts[s] = part(bytes);
        }
        return new MemoryRegion(parts, () -> {});
    }

    private static MemorySegment part(long bytes) {
        return ARENA.allocate(MemoryRegion.HEADER_BYTES + bytes, 64);
    }
}
