package dev.weft.fabric;

import dev.weft.ffi.Mpi;
import dev.weft.ffi.MpiRequests;
import dev.weft.plan.Hosts;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;

/**
 * All of one rank's traffic with ranks on other hosts. One thread, the mail thread, makes every
 * call to MPI, so that MPI need not allow more than that; other threads post letters and wait for
 * words.
 *
 * <p>Which release pairs with which acquire: a letter is posted and polled under its channel's
 * lock, so what the poster wrote before is visible to the mail thread; what the mail thread has
 * received is published by the word that it stores ({@link MemoryFabric#store}) after it.
 */
final class MpiMail {

    /** Work counters travel this often, also to say that this rank is there. */
    private static final long HEARTBEAT_NS = 100_000_000;

    private static final System.Logger LOG = System.getLogger("dev.weft");

    private static final int LAST_ROUNDS = 100;
    private static final long LAST_ROUND_NS = 1_000_000;

    private final Mpi mpi;
    private final int self;
    private final MpiPost post;
    private final MpiRequests requests;
    private final Arena arena = Arena.ofShared();

    /** By world rank; null for ranks of this host. */
    private final MpiChannel[] channels;

    private final MpiChannel[] bySlot;

    /** By world rank: 1 where it cannot be reached. Set by the mail thread. */
    private final AtomicIntegerArray lost;

    /** By world rank: when something last came from it. Set by the mail thread. */
    private final AtomicLongArray heardNs;

    private final MpiRegions regions = new MpiRegions();
    private final ConcurrentHashMap<Integer, MpiCourier> couriers = new ConcurrentHashMap<>();
    private final ConcurrentLinkedQueue<Runnable> errands = new ConcurrentLinkedQueue<>();
    private final MpiNap nap = new MpiNap();

    private final long heartbeatNs;

    /** The one that makes this object. */
    private final Thread thread = Thread.currentThread();

    private MpiFabric world;
    private Health health;
    private long beatAt;
    private boolean endSent;
    private volatile boolean stopping;

    MpiMail(Mpi mpi, long comm, int self, Hosts hosts, long deadlineNs) {
        this.mpi = mpi;
        this.self = self;
        this.channels = new MpiChannel[hosts.ranks()];
        this.lost = new AtomicIntegerArray(hosts.ranks());
        this.heardNs = new AtomicLongArray(hosts.ranks());
        this.heartbeatNs = Math.min(HEARTBEAT_NS, deadlineNs / 8);
        int others = 0;
        for (int r = 0; r < channels.length; r++) {
            if (!hosts.shareMemory(self, r)) {
                channels[r] = new MpiChannel(r, MpiChannel.SLOTS * others++, arena);
            }
        }
        this.bySlot = new MpiChannel[others];
        for (MpiChannel channel : channels) {
            if (channel != null) {
                bySlot[channel.firstSlot / MpiChannel.SLOTS] = channel;
            }
        }
        this.requests = mpi.requests(Math.max(1, MpiChannel.SLOTS * others));
        this.post = new MpiPost(mpi, comm, requests);
    }

    /** Whether the world's rank can still be reached. */
    boolean reaches(int worldRank) {
        return lost.get(worldRank) == 0;
    }

    /** Whether nothing has come from a rank on another host for so long. Any thread may ask. */
    boolean isSilent(int worldRank, long ns) {
        return channels[worldRank] != null && System.nanoTime() - heardNs.get(worldRank) > ns;
    }

    /** Time since something came from the world's rank; -1 for one of this host. */
    long silentMs(int worldRank) {
        return channels[worldRank] == null
                ? -1
                : (System.nanoTime() - heardNs.get(worldRank)) / 1_000_000;
    }

    /** The channel to the world's rank; null where it is on this host. */
    MpiChannel channel(int worldRank) {
        return channels[worldRank];
    }

    void register(MpiRegion region) {
        regions.register(region);
    }

    void register(MpiCourier courier) {
        couriers.put(courier.id(), courier);
    }

    void forget(MpiCourier courier) {
        couriers.remove(courier.id());
    }

    /** A letter to the world's rank has been posted. */
    void posted() {
        LockSupport.unpark(thread);
    }

    /**
     * Has the mail thread do something, once all that was posted before is with MPI. An errand may
     * be a collective call of MPI, if every rank is bound to make it without hearing from this one
     * again.
     */
    void run(Runnable errand) {
        errands.add(errand);
        LockSupport.unpark(thread);
    }

    void letGo(MpiRegion region) {
        run(() -> regions.letGo(region, self));
        for (int r = 0; r < region.ranks(); r++) {
            MpiChannel channel = channels[region.worldRank(r)];
            if (channel != null) {
                MpiLetter letter = channel.take();
                letter.word(MpiLetter.LET_GO, region.memory().key(), 0, 0);
                channel.post(letter);
            }
        }
        posted();
    }

    private boolean isSentFrom(long key) {
        for (MpiChannel channel : bySlot) {
            if (channel.sendsFrom(key)) {
                return true;
            }
        }
        return false;
    }

    /** The mail thread's life, from when the ranks have met until all have left. */
    void carry(MpiFabric fabric) {
        this.world = fabric;
        this.health = fabric.health;
        for (MpiChannel channel : bySlot) {
            heardNs.set(channel.peer, System.nanoTime());
            channel.receiveLetter(post);
        }
        while (!isDone()) {
            if (round()) {
                nap.moved();
            } else if (bySlot.length == 0) {
                // Only errands wake it; all peers share memory with this rank.
                LockSupport.parkNanos(this, HEARTBEAT_NS);
            } else {
                nap.take(isBusy());
            }
        }
        for (MpiChannel channel : bySlot) {
            if (reaches(channel.peer)) {
                channel.cancelReceive(requests);
            }
        }
        post.close();
    }

    private boolean isBusy() {
        for (MpiChannel channel : bySlot) {
            if (channel.isBusy()) {
                return true;
            }
        }
        return false;
    }

    /** Once told to stop: all that was posted has gone, and every peer has left or failed. */
    private boolean isDone() {
        if (!stopping || !endSent || !errands.isEmpty()) {
            return false;
        }
        for (MpiChannel channel : bySlot) {
            boolean reached = reaches(channel.peer);
            boolean silent = !reached || health.hasEnded(channel.peer);
            if (!silent || reached && channel.isBusy()) {
                return false;
            }
        }
        return true;
    }

    /** A rank on another host that has neither left nor failed; this one where there is none. */
    int firstPresent() {
        for (MpiChannel channel : bySlot) {
            if (!health.hasEnded(channel.peer)) {
                return channel.peer;
            }
        }
        return self;
    }

    /** Ends {@link #carry} as soon as nobody needs this rank any more. */
    void stop() {
        stopping = true;
        LockSupport.unpark(thread);
    }

    /** Gives back what only a mail thread at work needs. */
    void close() {
        regions.freeAll();
        requests.close();
        arena.close();
    }

    private boolean round() {
        boolean moved = false;
        boolean allWithMpi = true;
        // Before the letters: those posted ahead of it must leave ahead of it.
        Runnable errand = errands.peek();
        tellState();
        for (MpiChannel channel : bySlot) {
            try {
                moved |= channel.pump(post);
            } catch (RuntimeException e) {
                lose(channel, e.getMessage());
            }
            allWithMpi &= !reaches(channel.peer) || channel.allWithMpi();
        }
        if (errand != null && allWithMpi) {
            errands.remove();
            runErrand(errand);
            moved = true;
        }
        int completed = bySlot.length == 0 ? 0 : requests.testSome();
        for (int i = 0; i < completed; i++) {
            handle(i);
        }
        regions.freeUnused(this::isSentFrom);
        return moved | completed > 0;
    }

    /** One that fails is this rank's failure, of which its peers must hear. */
    private void runErrand(Runnable errand) {
        try {
            errand.run();
        } catch (RuntimeException e) {
            health.fail(e);
        }
    }

    /** After the mail thread's own failure: tells the peers, as far as MPI still does its work. */
    void tellOfFailure() {
        for (int attempt = 0; attempt < LAST_ROUNDS; attempt++) {
            tellState();
            for (MpiChannel channel : bySlot) {
                channel.pump(post);
            }
            requests.testSome();
            LockSupport.parkNanos(this, LAST_ROUND_NS);
        }
    }

    private void lose(MpiChannel channel, String why) {
        if (lost.compareAndSet(channel.peer, 0, 1)) {
            LOG.log(
                    Level.WARNING,
                    "rank {0}: rank {1} cannot be reached: {2}",
                    self,
                    channel.peer,
                    why);
        }
    }

    /** What peers must know of this rank: that it works, has failed or has left. */
    private void tellState() {
        int state = health.ownState();
        if (!endSent && state == ControlBlock.FAILED) {
            endSent = true;
            PeerFailedException failure = health.failureOf(self);
            toAll(true, letter -> letter.failure(failure.peer(), failure.reason()));
        } else if (!endSent && state == ControlBlock.LEFT) {
            endSent = true;
            toAll(false, letter -> letter.word(MpiLetter.LEFT, 0, 0, 0));
        }
        long now = System.nanoTime();
        if (!endSent && now - beatAt >= heartbeatNs) {
            beatAt = now;
            long work = health.ownWork();
            toAll(true, letter -> letter.value(MpiLetter.WORK, 0, 0, work));
        }
    }

    private interface Writer {
        void write(MpiLetter letter);
    }

    /**
     * @param ahead of all that waits to be sent
     */
    private void toAll(boolean ahead, Writer writer) {
        for (MpiChannel channel : bySlot) {
            MpiLetter letter = channel.take();
            writer.write(letter);
            if (ahead) {
                channel.postAhead(letter);
            } else {
                channel.post(letter);
            }
        }
    }

    private void handle(int completed) {
        int slot = requests.completed(completed);
        MpiChannel channel = bySlot[slot / MpiChannel.SLOTS];
        int error = requests.error(completed);
        if (error != 0) {
            lose(channel, mpi.errorText(error));
            return;
        }
        try {
            handle(channel, slot, completed);
        } catch (RuntimeException e) {
            lose(channel, e.getMessage());
        }
    }

    private void handle(MpiChannel channel, int slot, int completed) {
        if (channel.isLetterSlot(slot) || channel.isReceiveSlot(slot)) {
            heardNs.set(channel.peer, System.nanoTime());
        }
        if (channel.isLetterSlot(slot)) {
            read(channel, (int) requests.received(completed));
            channel.receiveLetter(post);
        } else {
            // Every message of a rectangle counts, since a large one may take long. No other letter
            // does: they tell of work, and would tell of each other for ever.
            if (channel.movesRows(slot)) {
                health.worked();
            }
            if (channel.isReceiveSlot(slot)) {
                health.peerMoved(channel.peer);
            }
            MpiLetter gone = channel.completed(slot);
            if (gone != null) {
                if (gone.courier != null) {
                    gone.courier.ended(gone.index(), channel.peer);
                }
                channel.gone(gone);
            }
        }
        for (MpiArrival arrival = channel.complete();
                arrival != null;
                arrival = channel.complete()) {
            apply(channel, arrival);
            channel.applied(arrival);
        }
    }

    private void read(MpiChannel channel, int received) {
        MpiLetter letter = channel.inbox;
        int peer = channel.peer;
        switch (letter.kind()) {
            case MpiLetter.WORK -> health.peerWorked(peer, letter.wide());
            case MpiLetter.FAILED ->
                    health.peerFailed(peer, letter.value(), letter.message(received));
            case MpiLetter.GET -> answer(channel, letter);
            case MpiLetter.PUT -> {
                MpiRegion region = regions.get(letter.key());
                channel.arrive().of(letter, cut(letter), region.ownAddress(self) + letter.at());
            }
            case MpiLetter.WORD,
                    MpiLetter.PUBLISHED,
                    MpiLetter.VALUE,
                    MpiLetter.LET_GO,
                    MpiLetter.LEFT ->
                    channel.arrive().of(letter);
            default ->
                    throw new IllegalStateException(
                            "rank " + peer + " sent a letter of kind " + letter.kind());
        }
    }

    static MpiPieces cut(MpiLetter letter) {
        return MpiPieces.of(
                letter.rows(),
                letter.rowBytes(),
                letter.fromPitch(),
                letter.toPitch(),
                MpiPieces.MOST_BYTES);
    }

    private void answer(MpiChannel channel, MpiLetter get) {
        MpiLetter put = channel.take();
        put.answer(get);
        put.address = regions.get(get.key()).ownAddress(self) + get.wide();
        put.pieces = cut(put);
        channel.post(put);
    }

    private void apply(MpiChannel channel, MpiArrival arrival) {
        MpiLetter letter = arrival.letter;
        int peer = channel.peer;
        if (letter.kind() == MpiLetter.LEFT) {
            health.peerLeft(peer);
            return;
        }
        MpiRegion region = regions.get(letter.key());
        MemoryRegion memory = region.memory();
        int own = region.member(self);
        switch (letter.kind()) {
            case MpiLetter.LET_GO -> regions.letGo(region, peer);
            case MpiLetter.WORD -> world.store(memory, own, letter.at(), letter.value());
            case MpiLetter.PUBLISHED ->
                    world.store(memory, region.member(peer), letter.at(), letter.value());
            case MpiLetter.VALUE ->
                    Words.longRelease(
                            memory.words(region.member(peer)), letter.at(), letter.wide());
            default -> {
                world.store(memory, own, letter.flagAt(), letter.value());
                if (letter.counterAt() >= 0) {
                    world.store(memory, own, letter.counterAt(), letter.counter());
                }
                MpiCourier courier = couriers.get(letter.courierId());
                if (courier != null) {
                    courier.ended(letter.index(), peer);
                }
                health.worked();
            }
        }
    }

    /** CPU time of the mail thread. */
    long cpuNs() {
        return nap.cpuNs(thread);
    }
}
