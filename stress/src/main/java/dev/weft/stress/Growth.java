package dev.weft.stress;

import dev.weft.tune.Quantiles;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;

/**
 * Whether a process grows: compares the median of what was seen in the second fifth of its life,
 * when all code is warm, with the median of the last fifth. Used by one thread.
 */
final class Growth {

    /** Less than this says nothing: Java's own memory wanders by so much. */
    private static final long BYTES = 64L << 20;

    private static final double SHARE = 0.25;
    private static final int HANDLES = 8;
    private static final int FEWEST = 10;

    private final List<Footprint> seen = new ArrayList<>();

    void add(Footprint footprint) {
        seen.add(footprint);
    }

    int size() {
        return seen.size();
    }

    Footprint last() {
        return seen.getLast();
    }

    /** What has grown, in words; empty where nothing has, or too little was seen to tell. */
    List<String> leaks() {
        List<String> leaks = new ArrayList<>();
        if (seen.size() < FEWEST) {
            return leaks;
        }
        bytes("heap", Footprint::heapBytes, leaks);
        bytes("resident memory", Footprint::residentBytes, leaks);
        counts("file handles", Footprint::handles, leaks);
        counts("threads", Footprint::threads, leaks);
        // The fewest: other runs of the same user come and go beside this one.
        long before = fewestFolders(0, Math.max(1, seen.size() / 5));
        long after = fewestFolders(4 * seen.size() / 5, seen.size());
        if (after > before) {
            leaks.add("folders in shared memory: " + before + " -> " + after);
        }
        return leaks;
    }

    private long fewestFolders(int from, int end) {
        return seen.subList(from, end).stream().mapToLong(Footprint::sharedFolders).min().orElse(0);
    }

    private void bytes(String what, ToLongFunction<Footprint> of, List<String> leaks) {
        long before = early(of);
        long after = late(of);
        if (after - before > Math.max(BYTES, (long) (SHARE * before))) {
            leaks.add(what + ": " + (before >> 20) + " MiB -> " + (after >> 20) + " MiB");
        }
    }

    private void counts(String what, ToLongFunction<Footprint> of, List<String> leaks) {
        if (late(of) - early(of) > HANDLES) {
            leaks.add(what + ": " + early(of) + " -> " + late(of));
        }
    }

    long early(ToLongFunction<Footprint> of) {
        return median(seen.subList(seen.size() / 5, Math.max(1, 2 * seen.size() / 5)), of);
    }

    long late(ToLongFunction<Footprint> of) {
        return median(seen.subList(4 * seen.size() / 5, seen.size()), of);
    }

    private static long median(List<Footprint> some, ToLongFunction<Footprint> of) {
        return (long) Quantiles.median(some.stream().mapToDouble(of::applyAsLong).toArray());
    }
}
