package dev.weft.fabric.memory;

import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntConsumer;

/** Copies chunks between parts that are both mapped; if asked to, no faster than a link would. */
public final class CopyChunkMover implements ChunkMover {

    private final MemoryFabric fabric;
    private final IntConsumer ended;
    private final Link link;

    /**
     * A link of a set rate, shared by all movers of a rank: they wait for each other's bytes. The
     * waiting is real, and leaves the core to others. Thread-safe.
     */
    public static final class Link {

        private static final double BITS_PER_BYTE_NS = 8e9;

        /** How often a waiting rank says that it is alive: well under any deadline. */
        private static final long SIGN_OF_LIFE_NS = 50_000_000;

        private final long bitsPerSecond;
        private final AtomicLong freeNs = new AtomicLong(System.nanoTime());

        Link(long bitsPerSecond) {
            this.bitsPerSecond = bitsPerSecond;
        }

        /**
         * Reserves the link for this many bytes, after earlier ones, and waits for their arrival.
         */
        private void await(long bytes, MemoryFabric fabric) {
            long transferNs = (long) (bytes * BITS_PER_BYTE_NS / bitsPerSecond);
            long now = System.nanoTime();
            long arrival = freeNs.updateAndGet(free -> (free - now > 0 ? free : now) + transferNs);
            long left = arrival - System.nanoTime();
            while (left > 0) {
                LockSupport.parkNanos(Math.min(left, SIGN_OF_LIFE_NS));
                fabric.worked();
                left = arrival - System.nanoTime();
            }
        }
    }

    /**
     * @param link null for full speed
     */
    public CopyChunkMover(MemoryFabric fabric, IntConsumer ended, Link link) {
        this.fabric = fabric;
        this.ended = ended;
        this.link = link;
    }

    /** The flag's release after the copy pairs with the acquire of the thread that waits for it. */
    @Override
    public void move(int index, Move move, int flag, int counter) {
        if (move.wanted() == null) {
            copy(move, 0, move.rows());
        } else {
            copyWanted(move);
        }
        fabric.signal(move.region(), move.to(), move.flagAt(), flag);
        if (move.counterAt() >= 0) {
            fabric.signal(move.region(), move.to(), move.counterAt(), counter);
        }
        ended.accept(index);
    }

    private void copyWanted(Move move) {
        int first = move.firstRow();
        int end = first + Math.toIntExact(move.rows());
        int row = move.wanted().nextSetBit(first);
        while (row >= 0 && row < end) {
            int after = Math.min(end, move.wanted().nextClearBit(row));
            copy(move, row - first, after - row);
            row = move.wanted().nextSetBit(after);
        }
    }

    private void copy(Move move, long firstRow, long rows) {
        if (link != null) {
            link.await(rows * move.rowBytes(), fabric);
        }
        MemorySegment from = move.region().part(move.from());
        MemorySegment to = move.region().part(move.to());
        long fromAt = move.fromAt() + firstRow * move.fromPitch();
        long toAt = move.toAt() + firstRow * move.toPitch();
        if (move.isContiguous()) {
            MemorySegment.copy(from, fromAt, to, toAt, rows * move.rowBytes());
            return;
        }
        for (long r = 0; r < rows; r++) {
            MemorySegment.copy(
                    from,
                    fromAt + r * move.fromPitch(),
                    to,
                    toAt + r * move.toPitch(),
                    move.rowBytes());
        }
    }

    @Override
    public void awaitAll() {}

    @Override
    public void close() {}
}
