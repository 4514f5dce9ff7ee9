package dev.weft.fabric;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongPredicate;

/**
 * The regions of one rank by the keys under which letters name them. Any thread may register one;
 * all else is the mail thread's.
 */
final class MpiRegions {

    private final ConcurrentHashMap<Long, MpiRegion> byKey = new ConcurrentHashMap<>();

    /** Nobody holds them any more, but MPI may still send from them. */
    private final List<MpiRegion> unused = new ArrayList<>();

    /** The one that was named last: most letters name the same. */
    private MpiRegion latest;

    void register(MpiRegion region) {
        if (byKey.putIfAbsent(region.memory().key(), region) != null) {
            throw new IllegalStateException("two regions have the key " + region.memory().key());
        }
    }

    MpiRegion get(long key) {
        MpiRegion region = latest;
        if (region == null || region.memory().key() != key) {
            region = byKey.get(key);
            if (region == null) {
                throw new IllegalStateException("a letter names a region that is not here: " + key);
            }
            latest = region;
        }
        return region;
    }

    void letGo(MpiRegion region, int worldRank) {
        region.letGo(worldRank);
        if (region.isUnused()) {
            unused.add(region);
        }
    }

    /**
     * Frees what nobody holds.
     *
     * @param sent whether the region with a key is still being sent from
     */
    void freeUnused(LongPredicate sent) {
        if (!unused.isEmpty()) {
            unused.removeIf(region -> isFreed(region, sent));
        }
    }

    private boolean isFreed(MpiRegion region, LongPredicate sent) {
        long key = region.memory().key();
        if (sent.test(key)) {
            return false;
        }
        byKey.remove(key);
        latest = latest == region ? null : latest;
        region.free();
        return true;
    }

    /** At the end, when the mail thread is gone. */
    void freeAll() {
        byKey.values().forEach(MpiRegion::free);
        byKey.clear();
    }
}
