package dev.weft.fabric.memory;

import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/**
 * Memory for very many small experiments: two ranks, and slots that are used again and again, each
 * time with the next epoch, as Weft's own words are. Making fresh memory for each experiment would
 * take longer than the experiment.
 */
public final class Slots {

    /** More than the harness keeps alive at a time (256 x 40 experiments). */
    static final int COUNT = 1 << 14;

    private static final Arena ARENA = Arena.global();
    private static final Duration DEADLINE = Duration.ofSeconds(60);
    private static final ThreadFabric[] RANKS = ThreadFabric.world(2, DEADLINE, ARENA);

    private Slots() {}

    public static Transport rank(int rank) {
        return RANKS[rank];
    }

    /** A world of its own, of one rank. */
    public static Transport alone() {
        return ThreadFabric.world(1, DEADLINE, ARENA)[0];
    }

    /**
     * What a collective call gives to each of the two ranks. The call must not be a method of a
     * class that is being initialised: its other thread would wait for the end of that.
     */
    public static <T> List<T> onBothRanks(Function<Transport, T> call) {
        CompletableFuture<T> other = CompletableFuture.supplyAsync(() -> call.apply(RANKS[1]));
        T own = call.apply(RANKS[0]);
        return List.of(own, other.join());
    }

    /** A region of two parts with {@code bytesPerSlot} for each slot. */
    public static Region region(long bytesPerSlot) {
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

    /**
     * The health of a rank that is alone in its world.
     *
     * @param blocks a {@link ControlBlock} for each slot
     */
    static Health health(MemoryRegion blocks, int slot) {
        return new Health(blocks.subset(List.of(slot)), 1, 0, peer -> true, DEADLINE);
    }

    private static MemorySegment part(long bytes) {
        return ARENA.allocate(MemoryRegion.HEADER_BYTES + bytes, 64);
    }
}
