package dev.weft.fabric.mpi;

import dev.weft.fabric.FabricException.PeerFailedException;
import dev.weft.fabric.memory.ControlBlock;
import dev.weft.fabric.memory.Health;
import dev.weft.fabric.memory.MemoryFabric;
import dev.weft.fabric.mpi.MpiMessage.Field;
import dev.weft.ffi.Mpi;
import dev.weft.ffi.MpiRequests;
import dev.weft.plan.Hosts;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * One rank's connections to all ranks on other hosts. One thread, the progress thread, makes every
 * call to MPI, so that MPI need not support more. Other threads queue messages and wait for words.
 *
 * <p>Which release pairs with which acquire: a message is queued and polled under its channel's
 * lock, so what the sender wrote before is visible to the progress thread. What the progress thread
 * has received is published by the word that it stores afterwards ({@link MemoryFabric#store}).
 */
final class MpiProgress {

    /** Work counters are sent this often, which also shows that this rank is alive. */
    private static final long HEARTBEAT_NS = 100_000_000;

    private static final System.Logger LOG = System.getLogger("dev.weft");

    private static final int LAST_ROUNDS = 100;
    private static final long LAST_ROUND_NS = 1_000_000;

    private final Mpi mpi;
    private final int self;
    private final MpiEndpoint endpoint;
    private final MpiRequests requests;
    private final Arena arena = Arena.ofShared();

    /** By world rank; null for ranks of this host. */
    private final MpiChannel[] channels;

    /** Those that are not null, by their requests. */
    private final MpiChannel[] byRequest;

    /** By world rank: 1 if it cannot be reached. Set by the progress thread. */
    private final AtomicIntegerArray lost;

    /** By world rank: when something last arrived from it. Set by the progress thread. */
    private final AtomicLongArray heardNs;

    final MpiRegions regions = new MpiRegions();
    final MpiReceiver receiver;
    private final ConcurrentLinkedQueue<Runnable> tasks = new ConcurrentLinkedQueue<>();
    private final MpiBackoff backoff = new MpiBackoff();

    private final long heartbeatNs;

    /** The progress thread, which makes this object. */
    private final Thread thread = Thread.currentThread();

    private Health health;
    private long beatAt;
    private boolean endSent;
    private volatile boolean stopping;

    MpiProgress(Mpi mpi, long comm, int self, Hosts hosts, long deadlineNs) {
        this.mpi = mpi;
        this.self = self;
        this.channels = new MpiChannel[hosts.ranks()];
        this.receiver = new MpiReceiver(self, regions);
        this.lost = new AtomicIntegerArray(hosts.ranks());
        this.heardNs = new AtomicLongArray(hosts.ranks());
        this.heartbeatNs = Math.min(HEARTBEAT_NS, deadlineNs / 8);
        List<MpiChannel> others = new ArrayList<>();
        for (int r = 0; r < channels.length; r++) {
            if (!hosts.shareMemory(self, r)) {
                channels[r] = new MpiChannel(r, MpiChannel.REQUESTS * others.size(), arena);
                others.add(channels[r]);
            }
        }
        this.byRequest = others.toArray(MpiChannel[]::new);
        this.requests = mpi.requests(Math.max(1, MpiChannel.REQUESTS * byRequest.length));
        this.endpoint = new MpiEndpoint(mpi, comm, requests);
    }

    /** Whether the world's rank can still be reached. */
    boolean reaches(int worldRank) {
        return lost.get(worldRank) == 0;
    }

    /** The time since something arrived from the world's rank; -1 for this host's. Thread-safe. */
    long silentMs(int worldRank) {
        return channels[worldRank] == null
                ? -1
                : (System.nanoTime() - heardNs.get(worldRank)) / 1_000_000;
    }

    /** The channel to the world's rank; null if it is on this host. */
    MpiChannel channel(int worldRank) {
        return channels[worldRank];
    }

    /** Wakes the progress thread, after a message has been queued. */
    void wake() {
        LockSupport.unpark(thread);
    }

    /**
     * Lets the progress thread run a task, once MPI has everything that was queued before. A task
     * may be a collective call of MPI, if every rank is certain to make it without hearing from
     * this one again.
     */
    void submit(Runnable task) {
        tasks.add(task);
        wake();
    }

    /** Tells the peers that this rank has released the region. */
    void release(MpiRegion region) {
        submit(() -> regions.release(region, self));
        for (int r = 0; r < region.group.size(); r++) {
            MpiChannel channel = channels[region.group.worldRank(r)];
            if (channel != null) {
                channel.send(MpiMessage.RELEASED, region.memory.key(), 0, 0, 0);
            }
        }
        wake();
    }

    /** Runs the progress thread, from when all ranks have joined until all have left. */
    void run(MpiFabric fabric) {
        this.health = fabric.health;
        receiver.start(fabric);
        for (MpiChannel channel : byRequest) {
            heardNs.set(channel.peer, System.nanoTime());
            channel.receiveMessage(endpoint);
        }
        while (!isDone()) {
            if (round()) {
                backoff.reset();
            } else if (byRequest.length == 0) {
                // All peers share memory with this rank: there are only tasks to wait for.
                LockSupport.parkNanos(this, HEARTBEAT_NS);
            } else {
                backoff.idle(isBusy());
            }
        }
        for (MpiChannel channel : byRequest) {
            if (reaches(channel.peer)) {
                channel.cancelReceive(requests);
            }
        }
        endpoint.close();
    }

    private boolean isBusy() {
        for (MpiChannel channel : byRequest) {
            if (channel.isBusy()) {
                return true;
            }
        }
        return false;
    }

    /** Whether it was told to stop, everything queued is sent, and every peer has ended. */
    private boolean isDone() {
        if (!stopping || !endSent || !tasks.isEmpty()) {
            return false;
        }
        for (MpiChannel channel : byRequest) {
            boolean reached = reaches(channel.peer);
            boolean silent = !reached || health.hasEnded(channel.peer);
            if (!silent || reached && channel.isBusy()) {
                return false;
            }
        }
        return true;
    }

    /** A rank on another host that has neither left nor failed; if there is none, this one. */
    int firstPresent() {
        return Arrays.stream(byRequest)
                .mapToInt(channel -> channel.peer)
                .filter(peer -> !health.hasEnded(peer))
                .findFirst()
                .orElse(self);
    }

    /** Ends {@link #run} as soon as no peer needs this rank any more. */
    void stop() {
        stopping = true;
        wake();
    }

    /** Frees all memory, once {@link #run} has returned. */
    void close() {
        regions.freeAll();
        requests.close();
        arena.close();
    }

    private boolean round() {
        boolean moved = false;
        boolean flushed = true;
        // Taken before the messages are looked at: those queued before it must be sent before it.
        Runnable task = tasks.peek();
        sendState();
        for (MpiChannel channel : byRequest) {
            try {
                moved |= channel.start(endpoint);
            } catch (RuntimeException e) {
                lose(channel, e.getMessage());
            }
            flushed &= !reaches(channel.peer) || channel.isFlushed();
        }
        if (task != null && flushed) {
            tasks.remove();
            runTask(task);
            moved = true;
        }
        int completed = byRequest.length == 0 ? 0 : requests.testSome();
        for (int i = 0; i < completed; i++) {
            handle(i);
        }
        regions.freeUnused(byRequest);
        return moved | completed > 0;
    }

    /** Runs a task. If it fails, this rank has failed, and its peers must be told. */
    private void runTask(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException e) {
            health.fail(e);
        }
    }

    /** Tells the peers about the progress thread's own failure, as far as MPI still works. */
    void sendFailure() {
        try {
            for (int attempt = 0; attempt < LAST_ROUNDS; attempt++) {
                sendState();
                for (MpiChannel channel : byRequest) {
                    channel.start(endpoint);
                }
                requests.testSome();
                LockSupport.parkNanos(this, LAST_ROUND_NS);
            }
        } catch (RuntimeException e) {
            LOG.log(Level.DEBUG, "the failure of MPI cannot be sent to the peers", e);
        }
    }

    /** Marks the peer as unreachable. */
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

    /** Tells the peers this rank's state: that it works, has failed or has left. */
    private void sendState() {
        int state = health.ownState();
        if (!endSent && state == ControlBlock.FAILED) {
            endSent = true;
            PeerFailedException failure = health.failureOf(self);
            toAll(true, message -> message.failure(failure.peer(), failure.reason()));
        } else if (!endSent && state == ControlBlock.LEFT) {
            endSent = true;
            toAll(false, message -> message.set(MpiMessage.LEFT, 0, 0, 0, 0));
        }
        long now = System.nanoTime();
        if (!endSent && now - beatAt >= heartbeatNs) {
            beatAt = now;
            long work = health.ownWork();
            toAll(true, message -> message.set(MpiMessage.WORK, 0, 0, 0, work));
        }
    }

    /** Sends a message to all peers, before everything that is queued if {@code ahead}. */
    private void toAll(boolean ahead, Consumer<MpiMessage> writer) {
        for (MpiChannel channel : byRequest) {
            MpiMessage message = channel.newMessage();
            writer.accept(message);
            if (ahead) {
                channel.sendFirst(message);
            } else {
                channel.send(message);
            }
        }
    }

    private void handle(int completed) {
        int request = requests.completed(completed);
        MpiChannel channel = byRequest[request / MpiChannel.REQUESTS];
        int error = requests.error(completed);
        try {
            if (error == 0) {
                handle(channel, request, completed);
            } else {
                lose(channel, mpi.errorText(error));
            }
        } catch (RuntimeException e) {
            lose(channel, e.getMessage());
        }
    }

    private void handle(MpiChannel channel, int request, int completed) {
        if (channel.isMessageReceive(request) || channel.isFragmentReceive(request)) {
            heardNs.set(channel.peer, System.nanoTime());
        }
        if (channel.isMessageReceive(request)) {
            receiver.read(channel, (int) requests.received(completed));
            channel.receiveMessage(endpoint);
        } else {
            // Every fragment counts as work, since a large rectangle may take long. Other messages
            // do not: work counters are messages too, and would keep each other growing.
            if (channel.movesRows(request)) {
                health.worked();
            }
            if (channel.isFragmentReceive(request)) {
                health.peerMoved(channel.peer);
            }
            MpiMessage sent = channel.completed(request);
            if (sent != null) {
                if (sent.mover != null) {
                    sent.mover.ended(sent.number(Field.INDEX), channel.peer);
                }
                channel.recycle(sent);
            }
        }
        receiver.applyComplete(channel);
    }

    /** CPU time of the progress thread. */
    long cpuNs() {
        return backoff.cpuNs(thread);
    }
}
