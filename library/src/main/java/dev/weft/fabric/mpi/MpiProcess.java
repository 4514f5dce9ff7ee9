package dev.weft.fabric.mpi;

import dev.weft.fabric.FabricException.StallException;
import dev.weft.fabric.memory.ControlBlock;
import dev.weft.fabric.memory.Health;
import dev.weft.fabric.memory.MemoryFabric.Membership;
import dev.weft.fabric.transport.CoreShare;
import dev.weft.fabric.transport.RowGather;
import dev.weft.ffi.Mpi;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.ffi.MpiThreadLevel;
import dev.weft.plan.Hosts;
import dev.weft.process.WaitTime;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Deque;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Joins and leaves, as one rank of a world that MPI has started. The progress thread, which it
 * starts, initialises MPI and is the only thread that ever calls it.
 */
public final class MpiProcess {

    private static final System.Logger LOG = System.getLogger("dev.weft");

    /** After a failure: time for peers to learn of it, and to report it, before this rank ends. */
    private static final long UNWIND_NS = 2_000_000_000L;

    private static final long LINGER_NS = 300_000_000L;

    private static final long POLL_NS = 50_000_000L;

    private static final long LOCAL_POLL_NS = 1_000_000L;

    /**
     * The time for MPI_Finalize. All ranks have left by then, so the user must not wait if it hangs
     * (MPICH 4.0.2 over TCP did, in most runs on three hosts).
     */
    private static final long FINALIZE_NS = 3_000_000_000L;

    private final Duration deadline;
    private final CompletableFuture<MpiFabric> joined = new CompletableFuture<>();
    private final CompletableFuture<Void> left = new CompletableFuture<>();
    private final CompletableFuture<Void> finished = new CompletableFuture<>();
    private final Thread thread =
            Thread.ofPlatform().daemon().name("weft-mpi").unstarted(this::run);
    private Mpi mpi;
    private long comm;
    private int rank;
    private Hosts hosts;
    private CoreShare cores;
    private MpiHost host;
    private MpiProgress progress;
    private final Deque<Long> spareComms = new ConcurrentLinkedDeque<>();
    private volatile boolean abandoned;

    /** Steps of joining that are done; written only by the progress thread. */
    private volatile int steps;

    private boolean allLeft;

    private MpiProcess(Duration deadline) {
        this.deadline = deadline;
    }

    /**
     * Joins the world. Collective over all processes that were started together. A step that takes
     * longer than the deadline, for example because a rank never starts, is a stall.
     */
    public static MpiFabric join(Duration deadline) {
        MpiProcess process = new MpiProcess(deadline);
        process.thread.start();
        try {
            long waitedNs = 0;
            int steps = 0;
            for (long looked = System.nanoTime(); waitedNs <= WaitTime.nanoseconds(deadline); ) {
                MpiFabric fabric =
                        process.joined
                                .copy()
                                .completeOnTimeout(null, POLL_NS, TimeUnit.NANOSECONDS)
                                .get();
                if (fabric != null) {
                    return fabric;
                }
                long now = System.nanoTime();
                waitedNs = process.steps == steps ? waitedNs + WaitTime.counted(looked, now) : 0;
                steps = process.steps;
                looked = now;
            }
            throw new StallException(
                    MpiEnvironment.current().rank().orElse(-1),
                    -1,
                    -1,
                    -1,
                    "the meeting of all ranks that MPI started (is each of them a Weft, is the"
                            + " network between their hosts up, and is the deadline long enough to"
                            + " start?)",
                    deadline);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while joining", e);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof RuntimeException cause
                    ? cause
                    : new IllegalStateException(e.getCause());
        }
    }

    Hosts hosts() {
        return hosts;
    }

    CoreShare cores() {
        return cores;
    }

    Path folder() {
        return host.folder();
    }

    /** Collective. */
    RowGather rowGather(MpiFabric fabric) {
        return new MpiRowGather(mpi, comm, progress, fabric, spareComms);
    }

    private void run() {
        MpiFabric fabric;
        try {
            fabric = bootstrap();
        } catch (Throwable e) {
            joined.completeExceptionally(e);
            return;
        }
        joined.complete(fabric);
        try {
            progress.run(fabric);
            left.complete(null);
            if (!abandoned) {
                for (long spare : spareComms) {
                    mpi.free(spare);
                }
                mpi.free(comm);
                mpi.finish();
            }
        } catch (Throwable e) {
            fabric.health.fail(e);
            progress.sendFailure();
            left.completeExceptionally(e);
        } finally {
            finished.complete(null);
        }
    }

    private MpiFabric bootstrap() throws IOException {
        mpi = Mpi.load();
        MpiThreadLevel level = initialise();
        steps++;
        comm = mpi.duplicate(mpi.world());
        mpi.returnErrors(comm);
        rank = mpi.rank(comm);
        checkLauncher();
        MpiBootstrap bootstrap = new MpiBootstrap(mpi, comm);
        bootstrap.requireSameBuild();
        steps++;
        hosts = bootstrap.hosts();
        cores = bootstrap.cores();
        steps++;
        host = MpiHost.join(bootstrap, hosts, rank);
        progress = new MpiProgress(mpi, comm, rank, hosts, WaitTime.nanoseconds(deadline));
        Health health =
                new Health(
                        host.control(),
                        hosts.ranks(),
                        rank,
                        peer -> host.isAlive(peer) && progress.reaches(peer),
                        deadline);
        MpiFabric fabric =
                new MpiFabric(Membership.ofWorld(rank, host.control(), health), this, progress);
        progress.regions.register(new MpiRegion(host.control(), fabric.group, rank, () -> {}));
        LOG.log(
                Level.DEBUG,
                "rank {0} of {1} on hosts {2}: {3}, threads {4}",
                rank,
                hosts.ranks(),
                hosts,
                mpi.libraryVersion(),
                level);
        return fabric;
    }

    /** With a library of another family than the launcher's, each rank would be alone. */
    private void checkLauncher() {
        OptionalInt started = MpiEnvironment.current().size();
        if (started.isPresent() && started.getAsInt() != mpi.size(comm)) {
            throw new IllegalStateException(
                    """
                    the launcher has started %s ranks, but %s knows of %s: set WEFT_MPI_LIBRARY to \
                    the library that belongs to the launcher\
                    """
                            .formatted(started.getAsInt(), mpi.libraryVersion(), mpi.size(comm)));
        }
    }

    private MpiThreadLevel initialise() {
        if (!mpi.initialized()) {
            MpiThreadLevel level = mpi.initThread(MpiThreadLevel.MULTIPLE);
            if (level == MpiThreadLevel.SINGLE) {
                throw new IllegalStateException(
                        mpi.libraryVersion()
                                + " grants thread level SINGLE: expected FUNNELED at least");
            }
            return level;
        }
        MpiThreadLevel level = mpi.queryThread();
        if (mpi.finalized() || level != MpiThreadLevel.MULTIPLE) {
            throw new IllegalStateException(
                    "MPI is %s in this process: expected not yet initialised, or for MULTIPLE"
                            .formatted(mpi.finalized() ? "finalized" : "initialised for " + level));
        }
        return level;
    }

    /** Leaves the world: with all ranks if none has failed, otherwise within a bounded time. */
    void leave(MpiFabric fabric) {
        boolean failed = fabric.health.ownState() == ControlBlock.FAILED;
        fabric.health.leave();
        abandoned = failed;
        progress.stop();
        try {
            if (failed) {
                left.get(UNWIND_NS, TimeUnit.NANOSECONDS);
            } else {
                awaitLeft(fabric);
            }
            if (failed) {
                TimeUnit.NANOSECONDS.sleep(LINGER_NS);
            }
            finished.get(FINALIZE_NS, TimeUnit.NANOSECONDS);
            fabric.closeControl();
            progress.close();
        } catch (TimeoutException e) {
            if (!failed && !allLeft) {
                int peer = firstPresent(fabric.health);
                String awaited = "the end of rank " + peer;
                throw new StallException(rank, peer, -1, -1, awaited, deadline);
            }
            // Memory that MPI may still access is not freed.
            LOG.log(Level.DEBUG, "rank {0} does not wait for MPI or its peers any longer", rank);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException e) {
            throw new IllegalStateException(e.getCause().getMessage(), e.getCause());
        } finally {
            host.close();
        }
    }

    /**
     * Waits until all ranks have left; there is no limit while they make progress. Ranks of this
     * host count too: they may still allocate in the folder that its first rank removes.
     */
    private void awaitLeft(MpiFabric fabric)
            throws InterruptedException, ExecutionException, TimeoutException {
        long lookedNs = System.nanoTime();
        long work = fabric.health.workOf(fabric.group, false, lookedNs);
        long idleNs = 0;
        while (!haveOthersLeft() || host.firstPresent(fabric.health) >= 0) {
            if (left.isDone()) {
                TimeUnit.NANOSECONDS.sleep(LOCAL_POLL_NS);
            }
            long now = System.nanoTime();
            long workNow = fabric.health.workOf(fabric.group, false, now);
            if (workNow != work) {
                work = workNow;
                idleNs = 0;
            } else if (idleNs >= WaitTime.nanoseconds(deadline)) {
                throw new TimeoutException();
            }
            idleNs += WaitTime.counted(lookedNs, now);
            lookedNs = now;
        }
        allLeft = true;
    }

    /** Whether all ranks on other hosts have left, after a short wait for them. */
    private boolean haveOthersLeft() throws InterruptedException, ExecutionException {
        try {
            left.get(POLL_NS, TimeUnit.NANOSECONDS);
            return true;
        } catch (TimeoutException e) {
            return false;
        }
    }

    /** A rank that has neither left nor failed; if there is none, this one. */
    private int firstPresent(Health health) {
        int here = host.firstPresent(health);
        return here >= 0 ? here : progress.firstPresent();
    }
}
