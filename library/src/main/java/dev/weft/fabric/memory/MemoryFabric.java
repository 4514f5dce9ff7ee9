package dev.weft.fabric.memory;

import dev.weft.fabric.FabricException;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.fabric.World;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.CoreShare;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Hosts;
import dev.weft.process.WaitTime;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.function.IntConsumer;
import jdk.jfr.FlightRecorder;

/**
 * A fabric whose ranks wait for words in memory. Subclasses allocate that memory and send words to
 * other hosts.
 *
 * <p>Which release pairs with which acquire: {@link #signal} stores the word (volatile, hence
 * release) after the data it announces; {@link #reached} loads it (acquire) before the data is
 * read. No wakeup is lost: the waiter adds itself to the part's waiters and then loads the word;
 * the writer stores the word and then loads the waiters. All four are volatile, so at least one of
 * the two sees the other.
 */
public abstract class MemoryFabric implements Transport, World.Rank {

    /**
     * Polls of a word before blocking. On x86_64 a poll with its pause takes about 40 ns, so all of
     * them take a few microseconds: about the cost of blocking and waking.
     */
    private static final int SPINS = 100;

    /**
     * Polls of a word whose signal is imminent, each after yielding the core to another thread. If
     * there are more ranks than cores, this costs a fraction of blocking and waking: eight ranks on
     * two cores gather 1 KiB each in 90 us instead of 240.
     */
    private static final int YIELDS = 100;

    private static final WordWaiter WAITER = WordWaiter.best();
    private static final WordWaiter HEAP_WAITER = new WordWaiter.ParkingWaiter();

    /** How often to check that peers are alive, which costs a system call for each process. */
    private static final long ALIVE_CHECK_NS = 100_000_000;

    /** How much longer a wait for another thread of this rank lasts than that thread's own wait. */
    private static final long OWN_THREAD_NS = 200_000_000;

    /** The id of the fabric of all ranks; those of subgroups are longer. */
    private static final String WORLD_ID = "w";

    /**
     * What makes a rank a member of a group.
     *
     * @param id the same on every rank of the group, different for every group
     * @param rank in the group
     * @param control one {@link ControlBlock} per rank of the group
     */
    public record Membership(
            String id, Group group, int rank, MemoryRegion control, Health health) {

        /** In the group of all ranks of a world. */
        public static Membership ofWorld(int rank, MemoryRegion control, Health health) {
            return new Membership(WORLD_ID, Group.world(health.ranks()), rank, control, health);
        }
    }

    final String id;
    public final Group group;
    public final Health health;
    private final int rank;
    private final MemoryRegion control;
    private final Awaited[] entered;
    private int collectives;
    private int allocations;
    private int splits;
    private volatile boolean closed;

    /** Null if chunks are moved at full speed. */
    private CopyChunkMover.Link link;

    protected MemoryFabric(Membership membership) {
        this.id = membership.id();
        this.group = membership.group();
        this.rank = membership.rank();
        this.control = membership.control();
        this.health = membership.health();
        this.entered = new Awaited[group.size()];
        for (int r = 0; r < entered.length; r++) {
            // A fast rank may be in the next collective, but not past it: that one waits for this
            // rank.
            entered[r] = Awaited.of(Awaited.COLLECTIVE, r).within(1);
        }
    }

    /** A fabric of this kind for a subgroup of this group. */
    protected abstract MemoryFabric subgroup(Membership membership);

    /** Collective: allocates parts with headers; {@code name} is the same on every rank. */
    protected abstract MemoryRegion allocateParts(String name, long bytesWithHeader);

    /** Whether this is the fabric of all ranks, and not one that was split off. */
    protected final boolean isWorld() {
        return id.equals(WORLD_ID);
    }

    final WaitErrors errors() {
        return new WaitErrors(this);
    }

    @Override
    public final int rank() {
        return rank;
    }

    @Override
    public final int size() {
        return group.size();
    }

    @Override
    public final int worldSize() {
        return health.ranks();
    }

    @Override
    public final int worldRank(int rank) {
        return group.worldRank(rank);
    }

    /** One host, for threads and processes, unless links between them are paced. */
    @Override
    public Hosts hosts() {
        return link == null ? Hosts.one(size()) : Hosts.apart(size());
    }

    @Override
    public CoreShare cores() {
        return new CoreShare(worldRank(rank), worldSize(), worldRank(rank));
    }

    @Override
    public final Duration deadline() {
        return health.deadline();
    }

    @Override
    public final Transport split(ReplicaGroups groups) {
        List<Integer> members = groups.in(size()).with(rank);
        long[] digests = exchange(BuildId.digest(groups.toString()));
        for (int r = 1; r < digests.length; r++) {
            if (digests[r] != digests[0]) {
                throw new IllegalArgumentException(
                        "ranks %s and %s give unlike replica groups, this rank %s: expected the same on every rank"
                                .formatted(worldRank(0), worldRank(r), groups));
            }
        }
        MemoryRegion blocks = allocateRegion(ControlBlock.BYTES);
        MemoryFabric sub =
                subgroup(
                        new Membership(
                                id + "." + splits++ + "-" + members.getFirst(),
                                group.of(members),
                                members.indexOf(rank),
                                blocks.subset(members),
                                health));
        sub.link = link;
        return sub;
    }

    /**
     * Makes each rank count as a separate host. From now on, what it moves takes as long as on a
     * link of this rate, which all its movers share. Every rank calls it, before anything is
     * prepared.
     */
    public final void pace(long bitsPerSecond) {
        link = new CopyChunkMover.Link(bitsPerSecond);
    }

    @Override
    public final Region allocate(long bytes) {
        return allocateRegion(bytes);
    }

    @Override
    public final Region around(MemorySegment words) {
        return MemoryRegion.around(size(), words, () -> {});
    }

    private MemoryRegion allocateRegion(long bytes) {
        if (bytes < 0) {
            throw new IllegalArgumentException(
                    "a region of " + bytes + " bytes: expected zero or more");
        }
        String name = id + "-" + allocations++;
        return allocateParts(name, Math.addExact(bytes, MemoryRegion.HEADER_BYTES)).named(name);
    }

    @Override
    public final long[] exchange(long value) {
        return exchange(new long[] {value})[0];
    }

    /**
     * Even and odd exchanges use different words: a fast rank may write the next exchange's values
     * while a slow one still reads this one's. It cannot be two ahead, because there is a barrier
     * in between.
     */
    @Override
    public final long[][] exchange(long[] values) {
        long[][] all = new long[values.length][size()];
        int most = ControlBlock.EXCHANGED_VALUES;
        for (int first = 0; first < values.length; first += most) {
            int end = Math.min(first + most, values.length);
            long at = ControlBlock.EXCHANGED_AT + (collectives & 1) * (long) Long.BYTES * most;
            for (int i = first; i < end; i++) {
                publishValue(control, at + (long) Long.BYTES * (i - first), values[i]);
            }
            barrier();
            for (int i = first; i < end; i++) {
                for (int r = 0; r < size(); r++) {
                    all[i][r] = value(control, r, at + (long) Long.BYTES * (i - first));
                }
            }
        }
        return all;
    }

    @Override
    public final void barrier() {
        // A rank alone never waits, and would not notice that it was marked as failed.
        if (health.ownState() == ControlBlock.FAILED) {
            throw errors().failedBefore();
        }
        collectives++;
        publish(control, ControlBlock.ENTERED_AT, collectives);
        for (int r = 0; r < size(); r++) {
            await(control, r, ControlBlock.ENTERED_AT, collectives, entered[r]);
        }
    }

    @Override
    public final void signal(Region region, int home, long offset, int value) {
        MemoryRegion memory = (MemoryRegion) region;
        if (memory.isMapped(home)) {
            store(memory, home, offset, value);
        } else {
            sendWord(memory, home, offset, value);
        }
    }

    @Override
    public final void publish(Region region, long offset, int value) {
        MemoryRegion memory = (MemoryRegion) region;
        store(memory, rank, offset, value);
        sendPublished(memory, offset, value);
    }

    @Override
    public final void publishValue(Region region, long offset, long value) {
        MemoryRegion memory = (MemoryRegion) region;
        memory.part(rank).set(ValueLayout.JAVA_LONG, offset, value);
        sendValue(memory, offset, value);
    }

    @Override
    public final long value(Region region, int home, long offset) {
        return ((MemoryRegion) region).words(home).get(ValueLayout.JAVA_LONG, offset);
    }

    /** Sets a word of a mapped part or of a mirror, and wakes the threads that wait for it. */
    public final void store(MemoryRegion memory, int home, long offset, int value) {
        MemorySegment words = memory.words(home);
        Words.intVolatile(words, offset, value);
        if (memory.waiters(home) != 0) {
            waiter(words).wakeAll(words, offset);
        }
    }

    /** Futexes do not work for words on the Java heap. */
    private WordWaiter waiter(MemorySegment words) {
        return words.isNative() ? WAITER : HEAP_WAITER;
    }

    /** Sends a signal to a rank on another host. */
    protected void sendWord(MemoryRegion region, int home, long offset, int value) {
        throw new IllegalStateException("rank " + home + " is on another host");
    }

    /** Sends a published word to the ranks on other hosts. */
    protected void sendPublished(MemoryRegion region, long offset, int value) {}

    /** Sends a published 8-byte value to the ranks on other hosts. */
    protected void sendValue(MemoryRegion region, long offset, long value) {}

    @Override
    public ChunkMover mover(IntConsumer ended) {
        return new CopyChunkMover(this, ended, link);
    }

    @Override
    public final boolean reached(Region region, int home, long offset, int value) {
        return Words.intAcquire(((MemoryRegion) region).words(home), offset) - value >= 0;
    }

    @Override
    public final boolean reached(Region region, int home, long offset, int value, Awaited what) {
        int ahead = Words.intAcquire(((MemoryRegion) region).words(home), offset) - value;
        return ahead >= 0 && ahead <= what.lead();
    }

    @Override
    public final void await(Region region, int home, long offset, int value, Awaited what) {
        MemoryRegion memory = (MemoryRegion) region;
        for (int spin = 0; spin < SPINS; spin++) {
            if (isSignal(Words.intAcquire(memory.words(home), offset), value, what)) {
                return;
            }
            Thread.onSpinWait();
        }
        for (int look = 0; what.imminent() && look < YIELDS; look++) {
            if (isSignal(Words.intAcquire(memory.words(home), offset), value, what)) {
                return;
            }
            Thread.yield();
        }
        memory.addWaiters(home, 1);
        long began = System.nanoTime();
        try {
            block(memory, home, offset, value, what);
        } catch (FabricException e) {
            e.attach(errors().report(what, value, System.nanoTime() - began));
            throw e;
        } finally {
            memory.addWaiters(home, -1);
            if (FlightRecorder.isInitialized() && StallEvent.isRecorded()) {
                StallEvent.ended(began, worldRank(rank), errors().describe(what, value));
            }
        }
    }

    /** Throws if the word is past what its writer can have signalled. */
    private boolean isSignal(int seen, int value, Awaited what) {
        int ahead = seen - value;
        if (ahead > what.lead()) {
            throw errors().corrupt(seen, value, what);
        }
        return ahead >= 0;
    }

    /** The time since anything arrived from the world's rank; -1 if its memory is shared. */
    protected long silentMs(int worldRank) {
        return -1;
    }

    private void block(MemoryRegion region, int home, long offset, int value, Awaited what) {
        MemorySegment part = region.words(home);
        int writer = worldRank(what.writer());
        // In a wait for another thread of this rank, that thread's work counts too. If it waits for
        // a peer, it should give up first: it knows which peer.
        boolean ownWork = what.writer() == rank;
        long longestIdleNs = health.deadlineNs() + (ownWork ? OWN_THREAD_NS : 0);
        long now = System.nanoTime();
        long work = health.workOf(group, ownWork, now);
        long idleNs = 0;
        long checked = now;
        while (true) {
            // Read before the word: a rank that fails or leaves will never signal more than it
            // already has.
            int failed = health.failedRank(group);
            boolean writerLeft = health.hasLeft(writer);
            int seen = Words.intVolatile(part, offset);
            if (isSignal(seen, value, what)) {
                return;
            }
            if (failed >= 0) {
                throw health.failureOf(failed);
            }
            if (writerLeft) {
                throw errors().lost(writer, "left", what, value);
            }
            if (now - checked > ALIVE_CHECK_NS) {
                checked = now;
                int dead = health.deadPeer(group);
                if (dead >= 0) {
                    throw errors().lost(dead, "died", what, value);
                }
            }
            long workNow = health.workOf(group, ownWork, now);
            if (workNow != work) {
                work = workNow;
                idleNs = 0;
            } else if (idleNs > longestIdleNs) {
                throw errors().stalled(what, value);
            }
            waiter(part).block(part, offset, seen);
            long looked = now;
            now = System.nanoTime();
            idleNs += WaitTime.counted(looked, now);
        }
    }

    @Override
    public final void checkPeers() {
        int failed = health.failedRank(group);
        if (failed >= 0) {
            throw health.failureOf(failed);
        }
        int dead = health.deadPeer(group);
        if (dead >= 0) {
            throw errors().lost(dead, "died", Awaited.of(Awaited.END, group.memberOf(dead)), 0);
        }
    }

    @Override
    public final boolean isGone(int of) {
        return health.isGone(worldRank(of));
    }

    /** The world's number of the only silent rank of the group, or -1. */
    protected int silentPeer() {
        return -1;
    }

    @Override
    public final void worked() {
        health.worked();
    }

    @Override
    public final void present() {
        health.present();
    }

    @Override
    public final void leave() {
        health.leave();
    }

    @Override
    public final void fail(Throwable cause) {
        // After the rank has left, its control block is gone.
        if (!closed) {
            health.fail(cause);
        }
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        if (isWorld()) {
            health.leave();
        }
        control.close();
    }
}
