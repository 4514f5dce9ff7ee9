package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;

/**
 * Which chunks of gathered A are there: word {@code source * splits + split} for each. Words are
 * never reset: {@link #begin} moves on to the next round, which makes every chunk not ready at
 * once, and a published chunk carries the round's number. So it serves call after call.
 *
 * <p>One thread begins rounds; one thread publishes a chunk, with release; any thread looks and
 * waits, with acquire: what was written before a chunk was published is visible to who saw it.
 */
public final class HelionProgress implements AutoCloseable {

    private final Transport group;
    private final Region region;
    private final int size;
    private volatile int round;
    private volatile int splits;

    /** Collective. */
    HelionProgress(Fabric group, int splitsPerRank) {
        this.group = Transport.of(group);
        this.size = Math.multiplyExact(group.size(), splitsPerRank);
        this.region = this.group.allocate((long) Integer.BYTES * size);
    }

    Fabric group() {
        return group;
    }

    /** How many chunks it can tell of, all sources together. */
    public int size() {
        return size;
    }

    /** Chunks per source in the present round; 0 before the first. */
    public int splitsPerRank() {
        return splits;
    }

    /** Starts a round in which no chunk is ready yet. The gathers of {@link Helion} call it. */
    public void begin(int splitsPerRank) {
        HelionChecks.splits(splitsPerRank);
        HelionChecks.longEnough(size, group.size(), splitsPerRank);
        splits = splitsPerRank;
        round++;
    }

    /** Tells that a chunk is there, for those who write gathered A themselves. */
    public void publish(int source, int split) {
        long word = word(source, split);
        // Release; pairs with the acquire in isReady and await.
        group.signal(region, group.rank(), word, round);
    }

    /** Whether a chunk has arrived in the present round. */
    public boolean isReady(int source, int split) {
        return round != 0 && group.reached(region, group.rank(), word(source, split), round);
    }

    /** Waits for a chunk, with the group's deadline. */
    public void await(int source, int split) {
        if (!isReady(source, split)) {
            group.await(
                    region,
                    group.rank(),
                    word(source, split),
                    round,
                    Awaited.chunk(group.rank(), source, split));
        }
    }

    private long word(int source, int split) {
        if (source < 0 || source >= group.size() || split < 0 || split >= splits) {
            throw new IllegalArgumentException(
                    ("chunk %s of rank %s: expected one of %s chunks of one of %s ranks, in"
                                    + " a round that was begun")
                            .formatted(split, source, splits, group.size()));
        }
        return (long) Integer.BYTES * (source * splits + split);
    }

    /** Lets go of it; no gather may be under way. */
    @Override
    public void close() {
        region.close();
    }
}
