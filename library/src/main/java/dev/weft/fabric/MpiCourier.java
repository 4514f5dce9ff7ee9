package dev.weft.fabric;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.IntConsumer;

/**
 * Moves within a host as copies, between hosts as messages, of which some are under way at a time.
 * It counts those that have ended in a word of its own, so that waiting for them ends as all waits
 * do.
 */
final class MpiCourier implements Courier {

    /**
     * Moves under way at a time: enough that a link is busy while the two ends' mail threads nap
     * between the messages by which a transfer is agreed.
     */
    private static final int WINDOW = 8;

    private static final AtomicInteger IDS = new AtomicInteger();

    private final int id = IDS.getAndIncrement();
    private final MpiFabric fabric;
    private final MpiMail mail;
    private final CopyCourier copies;
    private final IntConsumer ended;
    private final Arena arena = Arena.ofShared();
    private final MemoryRegion words;
    private final Awaited[] awaited;
    private int started;
    private int latestPeer;

    /** The mail thread's: a call that failed may leave moves under way. */
    private boolean closed;

    private final AtomicInteger endedMoves = new AtomicInteger();

    /** By the peer's rank in the world. */
    private final AtomicIntegerArray underWay;

    MpiCourier(MpiFabric fabric, MpiMail mail, IntConsumer ended) {
        this.fabric = fabric;
        this.mail = mail;
        this.copies = new CopyCourier(fabric, ended);
        this.ended = ended;
        MemorySegment[] own = new MemorySegment[fabric.size()];
        Arrays.fill(own, arena.allocate(MemoryRegion.HEADER_BYTES + 64, 4096));
        this.words = new MemoryRegion(own, arena::close);
        this.awaited = new Awaited[fabric.size()];
        for (int r = 0; r < awaited.length; r++) {
            // This rank's mail thread tells of it: a peer that has left may have done its part.
            awaited[r] = new Awaited("the end of a transfer", fabric.rank(), r, -1, WINDOW);
        }
        this.underWay = new AtomicIntegerArray(fabric.worldSize());
        mail.register(this);
    }

    int id() {
        return id;
    }

    @Override
    public void move(int index, Move move, int flag, int counter) {
        MemoryRegion region = (MemoryRegion) move.region();
        boolean put = region.isMapped(move.from());
        int peer = move.to() == fabric.rank() ? move.from() : move.to();
        if (peer != latestPeer && move.counterAt() >= 0 && move.to() == fabric.rank()) {
            // One counter tells of moves from several ranks, which would overtake each other.
            awaitAll();
        }
        latestPeer = peer;
        if (put && region.isMapped(move.to())) {
            copies.move(index, move, flag, counter);
            return;
        }
        awaitEnded(started - WINDOW + 1);
        int worldPeer = fabric.worldRank(peer);
        MpiChannel channel = mail.channel(worldPeer);
        MpiLetter letter = channel.take();
        if (put) {
            letter.rectangle(MpiLetter.PUT, move, flag, counter, -1, index);
            letter.address = region.part(move.from()).address() + move.fromAt();
            letter.pieces = MpiMail.cut(letter);
            letter.courier = this;
        } else {
            letter.rectangle(MpiLetter.GET, move, flag, counter, id, index);
        }
        started++;
        underWay.incrementAndGet(worldPeer);
        channel.post(letter);
        mail.posted();
    }

    /** By the mail thread. */
    void ended(int index, int worldPeer) {
        if (closed) {
            return;
        }
        ended.accept(index);
        underWay.decrementAndGet(worldPeer);
        fabric.store(words, fabric.rank(), 0, endedMoves.incrementAndGet());
    }

    /** One by one, so that each wait is for a rank that has something to end. */
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
        mail.run(
                () -> {
                    closed = true;
                    mail.forget(this);
                    words.close();
                });
    }
}
