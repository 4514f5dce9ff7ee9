package dev.weft.op;

import dev.weft.fabric.FabricException;
import dev.weft.plan.Plan;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.step.StepPlan;
import dev.weft.trace.View;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntConsumer;
import jdk.jfr.FlightRecorder;

/**
 * A computation that the ranks of a fabric do together, prepared once and called many times. Every
 * rank prepares it, calls it and closes it, in the same order. A call that cannot complete ends on
 * every rank with a {@link FabricException} that carries a {@link FabricException#report report} of
 * the state on that rank. After that, the operator can only be closed.
 *
 * <p>One thread at a time uses an operator; several operators may be in use at once.
 *
 * @param <M> the type of matrix: {@link dev.weft.tensor.Matrix} in host memory, or {@link
 *     dev.weft.cuda.DeviceMatrix} on a GPU
 */
public abstract class Operator<M> implements AutoCloseable {

    /** What the caller must have asked for before it may read peers' results. */
    protected static final String SHARED = "sharedResults() and, for gathered A, that it is kept";

    private final Plan plan;
    private final int rank;
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
     * @param rank this rank in its group
     * @param worldRank the rank that errors name
     * @param mostUnderWay how many calls may have been started and not awaited
     */
    protected Operator(Plan plan, int rank, int worldRank, int mostUnderWay) {
        this.plan = plan;
        this.rank = rank;
        this.worldRank = worldRank;
        this.mostUnderWay = mostUnderWay;
    }

    /**
     * What every call does on every rank. Another operator can be planned alike: see {@link
     * OperatorBuilder#like}.
     */
    public final Plan plan() {
        return plan;
    }

    /** What every call does on this rank. */
    protected final StepPlan ownSteps() {
        return plan.steps().get(rank);
    }

    /** This rank in its group. */
    public final int rank() {
        return rank;
    }

    /**
     * The plans that {@link dev.weft.plan.Algorithm#AUTO} considered, tried ones first; empty if
     * the caller chose the algorithm. The first rank knows all of them, the others only those that
     * were tried.
     */
    public final List<Candidate> candidates() {
        return candidates;
    }

    /** The name of the engine that multiplies. */
    public abstract String engine();

    /** Whether the bits of a row never depend on which rows are multiplied with it. */
    public abstract boolean sameBitsForAnyRows();

    /**
     * How many workers multiply at the same time on this rank: threads, or a GPU's thread blocks.
     */
    public abstract int computeWorkers();

    /**
     * Bytes that this rank keeps in memory that peers can reach: shards, flags and what arrives
     * here.
     */
    public abstract long reachableBytes();

    /** The most rows of each rank in a call: those that the operator was prepared for. */
    public final Shards mostRows() {
        return plan.chunks().shards();
    }

    /**
     * The next call's shard, [rows of this rank, K], for producers that write it in place: {@link
     * #call} does not copy it. Waits, like {@link #start}, for peers that are a call behind. It
     * holds what an earlier call left there.
     */
    public final M nextShard() {
        return nextShard(mostRows());
    }

    /**
     * Like {@link #nextShard()} for a call of these rows. Pass the same shards to that call, which
     * is not checked.
     */
    public abstract M nextShard(Shards shards);

    /** Gathers, multiplies and returns the result. Collective. */
    public final Result<M> call(M shard) {
        return callAtOnce(shard, mostRows());
    }

    /**
     * A call of its own number of rows, at most those that the operator was prepared for. Nothing
     * is prepared again. A row has the same bits as in a call of all rows, if {@link
     * #sameBitsForAnyRows}. Results have the rows of the call and no gaps. All ranks must pass the
     * same shards, which may change from call to call. An operator with a plan or an algorithm of
     * the caller's own may be slow for few rows.
     *
     * @param shard for a gather, this rank's rows of A; for a sum, all rows of the call
     * @param shards how many rows each rank has, none or more, up to {@link #mostRows}: of A in a
     *     gather, of C in a reduce-scatter. In an all-reduce only how they are cut for the sums.
     * @throws IllegalArgumentException if a rank has more rows than it was prepared for (nothing
     *     has started), or ranks pass different shards (the operator and its world have failed)
     * @throws UnsupportedOperationException if an algorithm of the caller's own takes rows of
     *     several shards at once where a call of fewer rows would leave gaps; the operator has
     *     failed
     */
    public final Result<M> call(M shard, Shards shards) {
        return callAtOnce(shard, shards);
    }

    /**
     * Like {@link #call(Object, Shards)}, with rows that are spread {@linkplain Shards#even
     * evenly}; refused if a rank was prepared for fewer.
     */
    public final Result<M> call(M shard, long rows) {
        return call(shard, Shards.even(rows, mostRows().ranks()));
    }

    /** Starts a call and returns while it runs; the shard must not change until it has ended. */
    public final PendingCall<M> start(M shard) {
        return start(shard, mostRows());
    }

    /** Like {@link #start(Object)} for a call of these rows: see {@link #call(Object, Shards)}. */
    public abstract PendingCall<M> start(M shard, Shards shards);

    /** A call that nothing is done beside: the caller may do some of its work. */
    Result<M> callAtOnce(M shard, Shards shards) {
        return start(shard, shards).await();
    }

    /** Like {@link #call}, with the shard in {@link #nextShard()} and the given view. */
    public final Result<M> callInPlace(View view) {
        return callInPlace(view, mostRows());
    }

    /** Like {@link #callInPlace(View)} for a call of these rows. */
    public abstract Result<M> callInPlace(View view, Shards shards);

    /**
     * Work of the program's own between calls: does a task for each number from 0 to {@code count -
     * 1}, in any order, and waits for all. It runs on the threads that multiply, and on the
     * caller's: they are still awake from the last call and are so for the next one, and threads of
     * another pool would compete with them for the cores. On a GPU the caller does it alone, and
     * threads that are pinned to cores do not help. Not collective. A task calls no operator.
     *
     * <p>If a task throws, those that have not begun are left out, and what was thrown first is
     * thrown here.
     */
    public void forEach(int count, IntConsumer task) {
        for (int i = 0; i < count; i++) {
            task.accept(i);
        }
    }

    /**
     * Replaces B number {@code index}, in the order in which they were given, by another one of the
     * same shape and type, stored the same way (transposed or not). The plan and all memory stay;
     * it costs as much as packing B. Collective: every rank replaces its own, and no call may be
     * running. The matrix may be freed afterwards. Ranks of a host that gave the same B share a
     * packed copy, so they must give the same B again.
     *
     * @throws UnsupportedOperationException for {@link Weights}, which are replaced by themselves;
     *     on a GPU, where {@link dev.weft.cuda.op.CudaWeights} are, and where the caller may write
     *     the new B into the given {@link dev.weft.cuda.DeviceMatrix}; and for a B with scales
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
     * The latest call's product with B number {@code index} on another rank of the same host; only
     * if {@link OperatorBuilder#sharedResults} was set and, for GPUs, if they reach each other.
     *
     * <p>Waits until that rank has ended the same call, with the usual deadline. That end is a
     * release and this wait the acquire, so the whole product is visible. It is valid until this
     * rank starts its next call; no barrier is needed. On the CPU, that rank writes elsewhere in
     * its next call, and starts the call after that only once this rank has started its own next
     * one. On a GPU, that rank's next product waits for this rank's next call: queue whatever reads
     * the product before that call, on the same stream, or let it end first.
     */
    public abstract M peerProduct(int rank, int index);

    /**
     * Gathered A of the latest call on another rank of the same host, if it was kept; otherwise
     * like {@link #peerProduct}.
     */
    public abstract M peerGathered(int rank);

    /** Ends running calls and frees all memory. */
    @Override
    public abstract void close();

    /** The result of the call that was awaited last. */
    protected abstract Result<M> result();

    /** Whether the earliest call that was not awaited yet has ended. */
    protected abstract boolean isDone();

    /** Waits for the end of call number {@code call}. */
    protected abstract void awaitEnd(int call);

    /**
     * Ends the waits of the peers, and keeps the details of {@code cause} for {@link #withReport}.
     */
    protected abstract void failPeers(Throwable cause);

    /** The cause with this rank's state added. Nothing of the operator may be running. */
    protected abstract RuntimeException withReport(RuntimeException cause);

    /** Notes that this operator was chosen from these candidates, after the calls it has made. */
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

    /** Numbers a call that is being started. */
    protected final int begin(View view) {
        views[++started & 1] = view;
        return started;
    }

    /** The call that was started last runs when others launch it, and is not awaited. */
    protected final void captured() {
        awaited = started;
    }

    /** The view of the latest call with the parity of {@code call}. */
    protected final View view(int call) {
        return views[call & 1];
    }

    /** One object for all calls, so that starting one allocates nothing. */
    protected final PendingCall<M> pending() {
        if (pending == null) {
            pending = new PendingCall<>(this);
        }
        return pending;
    }

    /** Keeps the first failure, which is the cause of all others. Thread-safe. */
    protected final void failed(Throwable cause) {
        failure.compareAndSet(null, cause);
        failPeers(cause);
    }

    /** Refuses shards that the operator was not prepared for. */
    protected final void checkRows(Shards shards) {
        Shards most = mostRows();
        if (!shards.fitsIn(most)) {
            throw new IllegalArgumentException(
                    "a call of shards %s: expected %d of at most %s rows"
                            .formatted(shards, most.ranks(), most));
        }
    }

    /** Refuses to replace a B while it may still be read. */
    protected final void checkNotUnderWay() {
        checkUsable();
        if (started != awaited) {
            throw new IllegalStateException("a call is under way: await it first");
        }
    }

    /** The error for a peer's result that cannot be read. */
    protected final IllegalStateException unreachable(int worldRankOfPeer, String expected) {
        return new IllegalStateException(
                "the result of rank %d cannot be reached from rank %d: expected %s"
                        .formatted(worldRankOfPeer, worldRank, expected));
    }

    /** Throws if a call cannot be started. */
    protected final void checkUsable() {
        Throwable cause = failure.get();
        if (closed || cause != null) {
            throw new IllegalStateException(
                    closed
                            ? "the operator is closed"
                            : "the operator has failed, and its world with it: expected World.renew()",
                    cause);
        }
        if (started - awaited == mostUnderWay) {
            throw new IllegalStateException(
                    mostUnderWay == 1
                            ? "a call is under way: await it first"
                            : mostUnderWay + " calls are under way: await the first of them");
        }
    }

    /** Whether this is the first close. */
    protected final boolean closeOnce() {
        boolean first = !closed;
        closed = true;
        return first;
    }

    /** Waits for the end of the earliest call that was not awaited yet. */
    final Result<M> await() {
        if (closed || awaited == started) {
            throw new IllegalStateException("no call is under way");
        }
        try {
            awaitEnd(awaited + 1);
        } catch (RuntimeException e) {
            failed(e);
        }
        Throwable cause = failure.get();
        // While the call still counts as under way: the report compares its rows with the peers'.
        RuntimeException reported =
                cause == null
                        ? null
                        : cause instanceof RuntimeException e
                                ? withReport(e)
                                : new IllegalStateException(cause);
        awaited++;
        if (FlightRecorder.isInitialized()) {
            CallEvent.ended(this, worldRank, awaited, cause == null);
        }
        if (reported != null) {
            throw reported;
        }
        return result();
    }

    /**
     * A plan that {@link dev.weft.plan.Algorithm#AUTO} considered.
     *
     * @param chunksPerSource chunks of the largest shard; 0 if there was no choice
     * @param predictedNs the simulator's time of a call on this machine; NaN if it was not
     *     simulated
     * @param measuredNs the time of a call when it was tried; NaN if it was not
     * @param chosen whether the operator runs this plan
     */
    public record Candidate(
            PlanWriter algorithm,
            int chunksPerSource,
            double predictedNs,
            double measuredNs,
            boolean chosen) {

        /** For callers with their own search, such as the command. */
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
     * A running call. It is awaited once, by any thread; if two calls are running, the earlier one
     * first.
     *
     * @param <M> the matrices: in host memory, or on a GPU
     */
    public static final class PendingCall<M> {

        private final Operator<M> operator;

        private PendingCall(Operator<M> operator) {
            this.operator = operator;
        }

        /**
         * Whether the call has ended here, and all ranks have started it: {@link #await} returns.
         */
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
         * The end of the call as a future, instead of {@link #await}: a separate thread awaits it.
         * Start the next call only once it is done.
         */
        public CompletableFuture<Result<M>> future() {
            return CompletableFuture.supplyAsync(
                    operator::await,
                    task -> Thread.ofPlatform().daemon().name("weft-await").start(task));
        }
    }
}
