package dev.weft.fabric.memory;

import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Moves chunks like another mover, but no faster than a link of a set rate. The waiting is real,
 * and leaves the core to others.
 */
final class PacedChunkMover implements ChunkMover {

    /** How often a waiting rank says that it is alive: well under any deadline. */
    private static final long SIGN_OF_LIFE_NS = 50_000_000;

    private final ChunkMover below;
    private final Link link;
    private final Runnable alive;

    /** Shared by all movers of a rank: they wait for each other's bytes. Thread-safe. */
    static final class Link {

        private static final double BITS_PER_BYTE_NS = 8e9;

        private final long bitsPerSecond;
        private final AtomicLong freeNs = new AtomicLong(System.nanoTime());

        Link(long bitsPerSecond) {
            this.bitsPerSecond = bitsPerSecond;
        }

        /**
         * Reserves the link for this many bytes, after earlier ones; returns when they will have
         * arrived.
         */
        private long arrivalNs(long bytes) {
            long transferNs = (long) (bytes * BITS_PER_BYTE_NS / bitsPerSecond);
            long now = System.nanoTime();
            return freeNs.updateAndGet(free -> (free - now > 0 ? free : now) + transferNs);
        }
    }

    /**
     * @param alive tells the peers that this rank is still working
     */
    PacedChunkMover(ChunkMover below, Link link, Runnable alive) {
        this.below = below;
        this.link = link;
        this.alive = alive;
    }

    @Override
    public void move(int index, Move move, int flag, int counter) {
        long arrival = link.arrivalNs(move.rows() * move.rowBytes());
        long left = arrival - System.nanoTime();
        while (left > 0) {
            LockSupport.parkNanos(Math.min(left, SIGN_OF_LIFE_NS));
            alive.run();
            left = arrival - System.nanoTime();
        }
        below.move(index, move, flag, counter);
    }

    @Override
    public void awaitAll() {
        below.awaitAll();
    }

    @Override
    public void close() {
        below.close();
    }
}
