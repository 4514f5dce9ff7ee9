package dev.weft.fabric.memory;

import dev.weft.fabric.transport.Region;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;

/**
 * A region as one rank sees it. The parts of its host's ranks are mapped; for the others it has
 * mirrors of their published words. Before each part or mirror is a header that only the fabric
 * sees:
 *
 * <pre>
 * byte    0 4 bytes  waiters: threads of any process blocked on a word of this part (atomic add)
 * byte 4096 the part as its user sees it
 * </pre>
 */
public final class MemoryRegion implements Region {

    /** A page, so that parts start at a page too. */
    public static final long HEADER_BYTES = 4096;

    private static final long WAITERS = 0;

    private final long key;
    private final BitSet mapped;
    private final MemorySegment[] whole;
    private final MemorySegment[] words;
    private final Runnable release;
    private String name = "";
    private boolean closed;

    /** A region whose parts are all mapped. */
    public MemoryRegion(MemorySegment[] whole, Runnable release) {
        this(0, all(whole.length), whole, release);
    }

    /**
     * @param key identifies the region between hosts
     * @param mapped the ranks whose parts are mapped
     * @param whole each rank's header and part, or mirror
     */
    public MemoryRegion(long key, BitSet mapped, MemorySegment[] whole, Runnable release) {
        this.key = key;
        this.mapped = mapped;
        this.whole = whole;
        this.release = release;
        this.words = new MemorySegment[whole.length];
        for (int r = 0; r < whole.length; r++) {
            words[r] = whole[r].asSlice(HEADER_BYTES);
        }
    }

    /** A region of this rank alone, with words in the caller's memory. */
    public static MemoryRegion around(int ranks, MemorySegment words, Runnable release) {
        MemorySegment[] whole = new MemorySegment[ranks];
        Arrays.fill(whole, Arena.ofAuto().allocate(HEADER_BYTES, Long.BYTES));
        MemoryRegion region = new MemoryRegion(whole, release);
        Arrays.fill(region.words, words);
        return region;
    }

    /** Sets the name, before others see the region. */
    public MemoryRegion named(String given) {
        name = given;
        return this;
    }

    @Override
    public String name() {
        return name;
    }

    public long key() {
        return key;
    }

    public boolean isMapped(int rank) {
        return mapped.get(rank);
    }

    @Override
    public MemorySegment part(int rank) {
        if (!isMapped(rank)) {
            throw new IllegalStateException(
                    "the part of rank %s is on another host: mapped are those of ranks %s"
                            .formatted(rank, mapped));
        }
        return words[rank];
    }

    /** The part, or the mirror of its words. */
    public MemorySegment words(int rank) {
        return words[rank];
    }

    /** The parts of these ranks, in this order, as a region. */
    public MemoryRegion subset(List<Integer> ranks) {
        MemorySegment[] parts = new MemorySegment[ranks.size()];
        BitSet reached = new BitSet();
        for (int r = 0; r < parts.length; r++) {
            parts[r] = whole[ranks.get(r)];
            reached.set(r, isMapped(ranks.get(r)));
        }
        return new MemoryRegion(key, reached, parts, this::close);
    }

    private static BitSet all(int ranks) {
        BitSet all = new BitSet();
        all.set(0, ranks);
        return all;
    }

    int waiters(int rank) {
        return Words.intVolatile(whole[rank], WAITERS);
    }

    void addWaiters(int rank, int delta) {
        Words.intAdd(whole[rank], WAITERS, delta);
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            release.run();
        }
    }
}
