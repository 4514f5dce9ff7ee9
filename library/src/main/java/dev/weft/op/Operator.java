package dev.weft.op;

import dev.weft.fabric.FabricException;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import jdk.jfr.FlightRecorder;

/**
 * A computation that the ranks of a fabric do together, prepared once and called many times. Every
 * rank prepares it, calls it and closes it, in the same order. A call that cannot complete ends on
 * every rank with a {@link FabricException}, whose {@link FabricException#report report} says how
 * things stood on that rank. After that, the operator can only be closed.
 *
 * <p>One thread at a time uses an operator; several operators may be in use at once.
 *
 * @param <M> the type of matrix: {@link dev.weft.tensor.Matrix} in host memory, or {@link
 *     dev.weft.cuda.DeviceMatrix} on a GPU
 */
public abstract class Operator<M> implements AutoCloseable {

    /** What must have been asked for so that peers may read results. */
    protected static final String SHARED = "sharedResults() and, for gathered A, that it is kept";

    private final List<RankPlan> plans;
    private final RankPlan plan;
    private final int worldRank;
    private final int mostUnderWay;
    private final View[] views = new View[2];
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private PendingCall<M> pending;
    private List<Candidate> candidates = List.of();
    private int started;
    private int awaited;
    private int callsOfTrial;
    private boolean closed;

    /**
     * @param plan of this rank, which may say more than {@code plans} does
     * @param worldRank by which errors name this rank
     * @param mostUnderWay calls that may have been started and not awaited
     */
    protected Operator(List<RankPlan> plans, RankPlan plan, int worldRank, int mostUnderWay) {
        this.plans = plans;
        this.plan = plan;
        this.worldRank = worldRank;
        this.mostUnderWay = mostUnderWay;
    }

    /** What every call does on this rank. */
    public final RankPlan plan() {
        return plan;
    }

    /**
     * What every call does on every rank, in rank order, for another operator that does the same:
     * see {@link OperatorBuilder#plans}.
     */
    public final List<RankPlan> plans() {
        return plans;
    }

    /**
     * What {@link dev.weft.plan.Algorithm#AUTO} looked at, the plans that were tried first; empty
     * where the caller chose the algorithm. The first rank knows all, the others what was tried.
     */
    public final List<Candidate> candidates() {
        return candidates;
    }

    /** The name of what multiplies. */
    public abstract String engine();

    /** Whether a row's bits never depend on the rows that it is multiplied with. */
    public abstract boolean sameBitsForAnyRows();

    /** What multiplies at the same time on this rank: threads, or thread blocks of a GPU's grid. */
    public abstract int computeWorkers();

    /** Bytes that this rank keeps where peers can reach them: shards, flags and what lands here. */
    public abstract long reachableBytes();

    /**
     * The place of the next call's shard, [rows of this rank, K], for producers that write it there
     * themselves; given to {@link #call} it is not copied. Waits, like {@link #start}, for peers
     * that are a call behind. Its content is what an earlier call left there.
     */
    public abstract M nextShard();

    /** Gathers, multiplies and returns the result. Collective. */
    public final Result<M> call(M shard) {
        return start(shard).await();
    }

    /** Starts a call and returns while it runs; the shard must not change until it has ended. */
    public abstract PendingCall<M> start(M shard);

    /** As {@link #call}, with the shard that lies in {@link #nextShard()}, and one of the views. */
    public abstract Result<M> callInPlace(View view);

    /**
     * Replaces the B of number {@code index}, in the order in which they were given, by another one
     * of the same shape and type, stored alike (transposed or not). The plan and all memory stay;
     * it costs what packing B costs. Collective: every rank replaces its own, and no call is under
     * way. The matrix may be freed afterwards. Ranks of a host that gave one and the same B share a
     * packed copy, so they must give one and the same B again.
     *
     * @throws UnsupportedOperationException on a GPU, where the new B is written into the {@link
     *     dev.weft.cuda.DeviceMatrix} that was given; and for a B with scales
     */
    public abstract void replaceB(int index, M b);

    /** The latest call's result, as that call returned it. */
    public final Result<M> lastResult() {
        if (awaited == callsOfTrial) {
            throw new IllegalStateException("no call has been made yet");
        }
        checkUsable();
        if (awaited != started) {
            throw new IllegalStateException("a call is under way: await it first");
        }
        return result();
    }

    /**
     * The product, with the B of number {@code index}, that the latest call gave another rank of
     * this one's host; only where {@link OperatorBuilder#sharedResults} was asked for, and on GPUs
     * that reach each other.
     *
     * <p>Waits until that rank has ended the same call, with the deadline of all waits. That end is
     * a release and this wait the acquire: all of the product is visible. It holds until this rank
     * starts its next call; no barrier is needed. On the CPU that rank writes elsewhere in the call
     * after this one, and starts the one after that only once this rank has started the next. On a
     * GPU its next product waits for this rank's next call: what reads the product is queued before
     * that call, on the same stream, or has ended by then.
     */
    public abstract M peerProduct(int rank, int index);

    /**
     * Gathered A of the latest call at another rank of this one's host, if it was kept; otherwise
     * as {@link #peerProduct}.
     */
    public abstract M peerGathered(int rank);

    /** Ends calls under way and frees all memory. */
    @Override
    public abstract void close();

    /** Of the call that was awaited last. */
    protected abstract Result<M> result();

    /** Whether the earliest call that has not been awaited has ended. */
    protected abstract boolean isDone();

    /** Waits for the end of the call of this number. */
    protected abstract void awaitEnd(int call);

    /** Ends the waits of the peers, and keeps what {@code cause} tells for {@link #told}. */
    protected abstract void tellPeers(Throwable cause);

    /** The cause with how things stand on this rank; nothing of the operator runs. */
    protected abstract RuntimeException told(RuntimeException cause);

    /** This operator was chosen out of these, after the calls that it has made. */
    @SuppressWarnings("exports")
    protected final void chosenFrom(List<dev.weft.search.Candidate> all) {
        this.candidates = all.stream().map(Candidate::of).toList();
        this.callsOfTrial = awaited;
    }

    /** Calls that have been started. */
    protected final int started() {
        return started;
    }

    /** Calls that have been awaited. */
    protected final int awaited() {
        return awaited;
    }

    protected final boolean hasFailed() {
        return failure.get() != null;
    }

    /** A call is being started; from now on it has a number. */
    protected final int begin(View view) {
        views[++started & 1] = view;
        return started;
    }

    /** Of the latest call with the parity of this one. */
    protected final View view(int call) {
        return views[call & 1];
    }

    /** One for all calls, so that starting one allocates nothing. */
    protected final PendingCall<M> pending() {
        if (pending == null) {
            pending = new PendingCall<>(this);
        }
        return pending;
    }

    /** Keeps the first failure, which is the cause of all others. Any thread may call. */
    protected final void failed(Throwable cause) {
        failure.compareAndSet(null, cause);
        tellPeers(cause);
    }

    /** Refuses to replace a B while it may still be read. */
    protected final void checkNotUnderWay() {
        checkUsable();
        if (started != awaited) {
            throw new IllegalStateException("a call is under way: await it first");
        }
    }

    /** Refuses a shard of another shape or type. */
    protected final IllegalArgumentException misfit(String shard, String type) {
        return new IllegalArgumentException(
                "the shard of rank %d is %s: expected [%d, %d] %s"
                        .formatted(
                                worldRank,
                                shard,
                                plan.chunks().shards().rows(plan.rank()),
                                plan.chunks().cols(),
                                type));
    }

    /** Refuses to give what another rank got, named as errors name it. */
    protected final IllegalStateException unreachable(int worldRankOfPeer, String expected) {
        return new IllegalStateException(
                "the result of rank %d cannot be reached from rank %d: expected %s"
                        .formatted(worldRankOfPeer, worldRank, expected));
    }

    /** Whether a call can be started. */
    protected final void checkUsable() {
        Throwable cause = failure.get();
        if (closed || cause != null) {
            throw new IllegalStateException(
                    closed ? "the operator is closed" : "the operator has failed", cause);
        }
        if (started - awaited == mostUnderWay) {
            throw new IllegalStateException(
                    mostUnderWay == 1
                            ? "a call is under way: await it first"
                            : mostUnderWay + " calls are under way: await the first of them");
        }
    }

    /** Whether this is the first close. */
    protected final boolean closes() {
        boolean first = !closed;
        closed = true;
        return first;
    }

    /** Waits for the end of the earliest call that has not been awaited. */
    final Result<M> await() {
        if (closed || awaited == started) {
            throw new IllegalStateException("no call is under way");
        }
        try {
            awaitEnd(awaited + 1);
        } catch (RuntimeException e) {
            failed(e);
        }
        awaited++;
        Throwable cause = failure.get();
        if (FlightRecorder.isInitialized()) {
            CallEvent.ended(this, worldRank, awaited, cause == null);
        }
        if (cause != null) {
            throw cause instanceof RuntimeException e ? told(e) : new IllegalStateException(cause);
        }
        return result();
    }

    /** Which parts of a call are run; all but {@link #PIPELINED} serve to measure. */
    public enum View {
        /** The whole call: transfers and product at once (or one after the other if so planned). */
        PIPELINED,
        /** The product alone, as if every chunk had arrived: on whatever the buffers hold. */
        COMPUTE_ONLY,
        /** The transfers alone. */
        COMM_ONLY
    }

    /**
     * One of the plans that {@link dev.weft.plan.Algorithm#AUTO} looked at.
     *
     * @param chunksPerSource chunks of the largest shard; 0 where there was nothing to choose
     * @param predictedNs what the simulator says a call takes on this machine; NaN where it was not
     *     asked
     * @param measuredNs what it took when it was tried; NaN where it was not
     * @param chosen whether it is the one that the operator runs
     */
    public record Candidate(
            PlanWriter algorithm,
            int chunksPerSource,
            double predictedNs,
            double measuredNs,
            boolean chosen) {

        /** For those who search by themselves, as the command does. */
        @SuppressWarnings("exports")
        public static Candidate of(dev.weft.search.Candidate found) {
            return new Candidate(
                    found.algorithm(),
                    found.chunksPerSource(),
                    found.predictedNs(),
                    found.measuredNs(),
                    found.chosen());
        }
    }

    /**
     * A call under way. Awaited once, by the thread that started it or another one; of two that are
     * under way, the earlier one first.
     *
     * @param <M> the matrices: in host memory, or on a GPU
     */
    public static final class PendingCall<M> {

        private final Operator<M> operator;

        private PendingCall(Operator<M> operator) {
            this.operator = operator;
        }

        /** Whether {@link #await} would return at once. */
        public boolean isDone() {
            return operator.isDone();
        }

        /**
         * Waits for the end of the call.
         *
         * @throws dev.weft.fabric.FabricException if a peer stalls, dies, leaves or fails
         */
        public Result<M> await() {
            return operator.await();
        }

        /**
         * The end of the call as a future, in place of {@link #await}: a thread of its own awaits
         * it. Start the next call only once it is done.
         */
        public CompletableFuture<Result<M>> future() {
            return CompletableFuture.supplyAsync(
                    operator::await,
                    task -> Thread.ofPlatform().daemon().name("weft-await").start(task));
        }
    }
}
