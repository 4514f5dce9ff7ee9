package dev.weft.compat;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import java.lang.foreign.MemorySegment;

/**
 * Which chunks of gathered A have arrived on this rank: word {@code source * splits + split} of
 * 32-bit words, which may be anywhere in memory, is 0 until the chunk has arrived, then 1. {@link
 * Helion#allGatherMatmul} sets all words to 0 before it starts, so it can be used for many calls.
 * The copy engine on its own does not: see {@link #begin}. Each rank has its own, or none.
 *
 * <p>One thread begins rounds; one thread publishes a chunk, with release; any thread checks and
 * waits, with acquire: whoever sees a chunk sees everything written before it was published. No
 * thread may wait for a chunk while a round begins.
 */
public final class HelionProgress {

    private static final int ARRIVED = 1;

    private final Transport group;
    private final MemorySegment words;
    private final Region region;
    private final int size;
    private volatile int splits;

    HelionProgress(Fabric group, MemorySegment words) {
        this.group = Transport.of(group);
        this.words = words;
        this.region = this.group.around(words);
        this.size = Math.toIntExact(words.byteSize() / Integer.BYTES);
    }

    Fabric group() {
        return group;
    }

    /** The number of chunks it can report, for all sources together. */
    public int size() {
        return size;
    }

    /**
     * Starts a round in which no chunk is ready yet: all words are 0. Call it before you reuse this
     * with {@link Helion#copyEngineAllGatherWithProgress}.
     */
    public void begin(int splitsPerRank) {
        for (int i = 0; i < size; i++) {
            words.setAtIndex(JAVA_INT, i, 0);
        }
        splits(splitsPerRank);
    }

    /** The chunks of a round whose words are left as they are. */
    void splits(int splitsPerRank) {
        HelionChecks.splits(splitsPerRank);
        HelionChecks.longEnough(size, group.size(), splitsPerRank);
        // Volatile: whoever sees the round sees its zeros.
        splits = splitsPerRank;
    }

    /** Reports that a chunk has arrived, for callers that write gathered A themselves. */
    public void publish(int source, int split) {
        // Release; pairs with the acquire in await.
        group.signal(region, group.rank(), word(source, split, splits), ARRIVED);
    }

    /** Waits for a chunk, with the group's deadline. */
    public void await(int source, int split) {
        await(source, split, splits);
    }

    /** Returns whether it had to wait. */
    boolean await(int source, int split, int splitsPerRank) {
        long word = word(source, split, splitsPerRank);
        if (group.reached(region, group.rank(), word, ARRIVED)) {
            return false;
        }
        group.await(
                region, group.rank(), word, ARRIVED, Awaited.chunk(group.rank(), source, split));
        return true;
    }

    private long word(int source, int split, int splitsPerRank) {
        if (source < 0 || source >= group.size() || split < 0 || split >= splitsPerRank) {
            throw new IllegalArgumentException(
                    ("chunk %s of rank %s: expected one of %s chunks of one of %s ranks, in"
                                    + " a round that was begun")
                            .formatted(split, source, splitsPerRank, group.size()));
        }
        return (long) Integer.BYTES * (source * splitsPerRank + split);
    }
}
