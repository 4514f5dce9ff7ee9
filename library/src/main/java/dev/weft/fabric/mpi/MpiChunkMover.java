package dev.weft.fabric.mpi;

import dev.weft.fabric.memory.CopyChunkMover;
import dev.weft.fabric.memory.MemoryRegion;
import dev.weft.fabric.memory.Words;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import java.lang.foreign.Arena;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.IntConsumer;

/**
 * Moves chunks by copy within a host and by message between hosts, several at a time. It counts the
 * ended moves in its own word, so that a wait for them ends like any other wait.
 */
final class MpiChunkMover implements ChunkMover {

    /**
     * The most moves under way: enough to keep a link busy while the progress threads of both ends
     * sleep between the messages of a transfer.
     */
    private static final int WINDOW = 8;

    private static final AtomicInteger IDS = new AtomicInteger();

    private final int id = IDS.getAndIncrement();
    private final MpiFabric fabric;
    private final MpiProgress progress;
    private final CopyChunkMover copies;
    private final IntConsumer ended;
    private final MemoryRegion words;
    private final Awaited[] awaited;
    private int started;
    private int latestPeer;

    /** Set by the progress thread. A failed call may leave moves under way. */
    private boolean closed;

    private final AtomicInteger endedMoves = new AtomicInteger();

    /** Moves by the peer's rank in the world. */
    private final AtomicIntegerArray underWay;

    MpiChunkMover(MpiFabric fabric, MpiProgress progress, IntConsumer ended) {
        this.fabric = fabric;
        this.progress = progress;
        this.copies = new CopyChunkMover(fabric, ended, null);
        this.ended = ended;
        Arena arena = Arena.ofShared();
        this.words =
                MemoryRegion.around(fabric.size(), arena.allocate(Long.BYTES, 64), arena::close);
        this.awaited = new Awaited[fabric.size()];
        for (int r = 0; r < awaited.length; r++) {
            // This rank's progress thread signals it: the peer may have left by then.
            awaited[r] = new Awaited("the end of a transfer", fabric.rank(), r, -1, WINDOW);
        }
        this.underWay = new AtomicIntegerArray(fabric.worldSize());
        progress.receiver.register(this);
    }

    int id() {
        return id;
    }

    @Override
    public void move(int index, Move whole, int flag, int counter) {
        Move move = whole.trimmed();
        MemoryRegion region = (MemoryRegion) move.region();
        boolean put = region.isMapped(move.from());
        int peer = move.to() == fabric.rank() ? move.from() : move.to();
        if (peer != latestPeer && move.counterAt() >= 0 && move.to() == fabric.rank()) {
            // One counter counts moves from several ranks, which could overtake each other.
            awaitAll();
        }
        latestPeer = peer;
        if (put && region.isMapped(move.to())) {
            copies.move(index, whole, flag, counter);
            return;
        }
        awaitEnded(started - WINDOW + 1);
        int worldPeer = fabric.worldRank(peer);
        MpiChannel channel = progress.channel(worldPeer);
        MpiMessage message = channel.newMessage();
        if (put) {
            message.rectangle(MpiMessage.PUT, move, flag, counter, -1, index);
            message.cut(region.part(move.from()).address() + move.fromAt());
            message.mover = this;
        } else {
            message.rectangle(MpiMessage.GET, move, flag, counter, id, index);
        }
        started++;
        underWay.incrementAndGet(worldPeer);
        channel.send(message);
        progress.wake();
    }

    /** Called by the progress thread when a move has ended. */
    void ended(int index, int worldPeer) {
        if (closed) {
            return;
        }
        ended.accept(index);
        underWay.decrementAndGet(worldPeer);
        fabric.store(words, fabric.rank(), 0, endedMoves.incrementAndGet());
    }

    /** Waits for one move after the other, each time for a rank that still has one running. */
    private void awaitEnded(int count) {
        for (int seen = seenEnded(); seen - count < 0; seen = seenEnded()) {
            fabric.await(words, fabric.rank(), 0, seen + 1, awaited[peerUnderWay()]);
        }
    }

    private int seenEnded() {
        return Words.intAcquire(words.words(fabric.rank()), 0);
    }

    private int peerUnderWay() {
        for (int r = 0; r < awaited.length; r++) {
            if (underWay.get(fabric.worldRank(r)) > 0) {
                return r;
            }
        }
        return latestPeer;
    }

    @Override
    public void awaitAll() {
        awaitEnded(started);
    }

    @Override
    public void close() {
        progress.submit(
                () -> {
                    closed = true;
                    progress.receiver.forget(this);
                    words.close();
                });
    }
}
