package dev.weft.fabric.mpi;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The regions of one rank, by their keys. Any thread may register one; the rest is for the progress
 * thread.
 */
final class MpiRegions {

    private final ConcurrentHashMap<Long, MpiRegion> byKey = new ConcurrentHashMap<>();

    /** Released by all ranks, but MPI may still send from them. */
    private final List<MpiRegion> unused = new ArrayList<>();

    /** The region that was looked up last: most messages name the same one. */
    private MpiRegion latest;

    void register(MpiRegion region) {
        if (byKey.putIfAbsent(region.memory.key(), region) != null) {
            throw new IllegalStateException("two regions have the key " + region.memory.key());
        }
    }

    MpiRegion get(long key) {
        MpiRegion region = latest;
        if (region == null || region.memory.key() != key) {
            region = byKey.get(key);
            if (region == null) {
                throw new IllegalStateException(
                        "a message names a region that is not here: " + key);
            }
            latest = region;
        }
        return region;
    }

    void release(MpiRegion region, int worldRank) {
        region.holders.clear(worldRank);
        if (region.holders.isEmpty()) {
            unused.add(region);
        }
    }

    /** Frees the regions that all ranks have released and that no channel still sends from. */
    void freeUnused(MpiChannel[] channels) {
        if (!unused.isEmpty()) {
            unused.removeIf(region -> isFreed(region, channels));
        }
    }

    private boolean isFreed(MpiRegion region, MpiChannel[] channels) {
        long key = region.memory.key();
        if (Arrays.stream(channels).anyMatch(channel -> channel.sendsFrom(key))) {
            return false;
        }
        byKey.remove(key);
        latest = latest == region ? null : latest;
        region.free.run();
        return true;
    }

    /** Frees all regions, after the progress thread has ended. */
    void freeAll() {
        byKey.values().forEach(region -> region.free.run());
        byKey.clear();
    }
}
