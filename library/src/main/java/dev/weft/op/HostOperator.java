package dev.weft.op;

import dev.weft.exec.host.HostExecutor;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;

/** An operator on the CPU: whatever its plan does, one executor runs it. */
abstract sealed class HostOperator extends Operator<Matrix>
        permits AllGatherMatmul, MatmulReduceScatter, MatmulAllReduce {

    private final Transport fabric;
    private final Parts parts;
    private final List<HostExecutor> executors = new ArrayList<>();
    private final Outcome outcome;
    private final RankThreads threads;

    /** The one of the latest call. */
    private HostExecutor executor;

    private OperatorResources adopted;

    /**
     * The parts of one operator.
     *
     * @param sides this rank's right-hand sides
     * @param weights those that other operators may use as well
     * @param gathered the buffer that holds gathered A for the caller; -1 if it is not kept
     * @param sharedResults whether peers may read products and gathered A
     * @param resources what is closed with the operator
     */
    record Parts(
            Plan plan,
            HostExecutor.Work work,
            List<SharedB.Packed> sides,
            List<Weights> weights,
            int gathered,
            boolean sharedResults,
            OperatorResources resources) {

        private Transport fabric() {
            return work.fabric();
        }
    }

    /** Takes ownership of the resources, unless it fails. Collective. */
    HostOperator(Parts parts) {
        super(
                parts.plan(),
                parts.fabric().rank(),
                parts.fabric().worldRank(parts.fabric().rank()),
                1);
        this.fabric = parts.fabric();
        this.parts = parts;
        this.executor =
                new HostExecutor(parts.work(), null, parts.resources().arena(), this::failed);
        executors.add(executor);
        this.outcome = new Outcome();
        this.threads = new RankThreads(fabric, Math.max(1, executor.workers()));
        parts.weights().forEach(weights -> weights.usedBy(this));
    }

    /**
     * Adds plans for calls of fewer rows, from more to fewer. A call takes the last one that has
     * its rows. Collective.
     */
    final void addPlans(List<HostExecutor.Work> fewer) {
        for (HostExecutor.Work work : fewer) {
            executors.add(
                    new HostExecutor(
                            work, executors.getFirst(), parts.resources().arena(), this::failed));
        }
    }

    /** Whether there are other plans of fewer rows: where no shard is cut, those are the same. */
    static boolean hasFewerRows(Chunks chunks) {
        Shards shards = chunks.shards();
        return shards.maxRows() > 1
                && IntStream.range(0, shards.ranks()).anyMatch(r -> chunks.count(r) > 1);
    }

    /** Refuses what {@link #call} would refuse on this rank alone. */
    final void check(Matrix a, Shards shards) {
        checkUsable();
        executor(shards).checkA(a, shards);
    }

    private HostExecutor executor(Shards shards) {
        checkRows(shards);
        int last = executors.size() - 1;
        while (last > 0 && !shards.fitsIn(executors.get(last).most())) {
            last--;
        }
        return executors.get(last);
    }

    /** Also takes ownership of what it shares with others that auto has tried. */
    final void adopt(OperatorResources more, List<dev.weft.search.Candidate> all) {
        this.adopted = more;
        if (!all.isEmpty()) {
            chosenFrom(all);
        }
    }

    @Override
    public final String engine() {
        return parts.work().gemm().name();
    }

    @Override
    public final boolean sameBitsForAnyRows() {
        return parts.work().gemm().bits() != Gemm.Bits.NONE;
    }

    @Override
    public final long reachableBytes() {
        return executors.stream().mapToLong(HostExecutor::reachableBytes).sum();
    }

    @Override
    public final int computeWorkers() {
        return executor.workers();
    }

    @Override
    public final Matrix nextShard(Shards shards) {
        checkUsable();
        HostExecutor next = executor(shards);
        try {
            return next.awaitNextA(started(), shards);
        } catch (RuntimeException e) {
            failed(e);
            throw withReport(e);
        }
    }

    @Override
    public final Result<Matrix> callInPlace(View view, Shards shards) {
        queue(null, view, shards, true);
        return pending().await();
    }

    @Override
    final Result<Matrix> callAtOnce(Matrix a, Shards shards) {
        queue(a, View.PIPELINED, shards, true);
        return pending().await();
    }

    @Override
    public final PendingCall<Matrix> start(Matrix a, Shards shards) {
        queue(a, View.PIPELINED, shards, false);
        return pending();
    }

    private void queue(Matrix a, View view, Shards shards, boolean awaitedAtOnce) {
        checkUsable();
        HostExecutor next = executor(shards);
        if (a != null) {
            next.checkA(a, shards);
        }
        parts.work().epilogue().begin(next.resultRows(shards));
        HostExecutor before = executor;
        executor = next;
        try {
            executor.stage(a, started(), shards);
        } catch (FabricException e) {
            failed(e);
            throw withReport(e);
        } catch (RuntimeException | Error e) {
            // The results of the call before stay.
            executor = before;
            throw e;
        }
        // Only now: if the copy throws, nothing has started, and the peers still wait for this
        // call.
        executor.start(begin(view), view, awaitedAtOnce);
        try {
            executor.checkRowsSoFar();
        } catch (IllegalArgumentException e) {
            failed(e);
        }
    }

    @Override
    public void forEach(int count, IntConsumer task) {
        checkUsable();
        threads.forEach(count, task);
    }

    @Override
    public final void replaceB(int index, Matrix b) {
        checkNotUnderWay();
        SharedB.Packed side = parts.sides().get(index);
        if (parts.weights().stream().anyMatch(weights -> weights.packed() == side)) {
            throw new UnsupportedOperationException(
                    "B number %d is weights that other operators may use: replace it by Weights.replace"
                            .formatted(index));
        }
        try {
            new SharedB(fabric, parts.work().gemm()).replace("B number " + index, side, b);
        } catch (IllegalArgumentException | UnsupportedOperationException e) {
            // All ranks refuse alike, and nothing was replaced.
            throw e;
        } catch (RuntimeException e) {
            failed(e);
            throw withReport(e);
        }
    }

    @Override
    protected final void failPeers(Throwable cause) {
        executor.ended(cause);
        fabric.fail(cause);
    }

    @Override
    protected final RuntimeException withReport(RuntimeException cause) {
        if (cause instanceof FabricException e) {
            executor.attachTo(e);
            if (awaited() == started()) {
                return e;
            }
            try {
                // Ranks that wait for each other in plans of different rows only know of a stall.
                executor.checkRowsSoFar();
            } catch (IllegalArgumentException unlike) {
                unlike.addSuppressed(e);
                return unlike;
            }
        }
        return cause;
    }

    @Override
    protected final Result<Matrix> result() {
        return outcome;
    }

    @Override
    protected final boolean isDone() {
        return executor.isDone();
    }

    @Override
    protected final void awaitEnd(int call) {
        executor.await();
        outcome.endNs = System.nanoTime();
        if (hasFailed()) {
            return;
        }
        executor.checkRows();
        if (parts.sharedResults()) {
            executor.publishEnd();
        }
    }

    @Override
    public final Matrix peerProduct(int rank, int index) {
        Matrix[][] peers = parts.work().results().get(index).peers();
        Matrix all = peers == null ? null : peers[started() & 1][rank];
        return awaitResult(all == null ? null : all.rows(0, executor.resultRows()), rank);
    }

    @Override
    public final Matrix peerGathered(int rank) {
        boolean kept = parts.sharedResults() && lastResult().gathered().isPresent();
        return awaitResult(kept ? executor.gathered(rank, parts.gathered()) : null, rank);
    }

    /** The result of {@code rank}, once it is complete; null if it cannot be reached. */
    private Matrix awaitResult(Matrix result, int rank) {
        lastResult();
        if (result == null) {
            throw unreachable(
                    fabric.worldRank(rank), parts.sharedResults() ? "ranks of one host" : SHARED);
        }
        try {
            executor.awaitEnd(rank);
        } catch (RuntimeException e) {
            failed(e);
            throw withReport(e);
        }
        return result;
    }

    /** Waits for a running call, stops the workers and frees all memory. */
    @Override
    public final void close() {
        if (!closeOnce()) {
            return;
        }
        // The others use the first one's start words.
        executors.forEach(HostExecutor::await);
        executors.reversed().forEach(HostExecutor::close);
        threads.close();
        parts.weights().forEach(weights -> weights.leftBy(this));
        parts.resources().close();
        if (adopted != null) {
            adopted.close();
        }
    }

    /** One object for all calls. */
    private final class Outcome implements Result<Matrix> {

        /** By half, product and number of rows: made once, so that reading a result is free. */
        private final Matrix[][][] products;

        private long endNs;

        Outcome() {
            this.products = new Matrix[HostExecutor.COPIES][parts.work().results().size()][];
        }

        @Override
        public Matrix product(int index) {
            Matrix all = parts.work().results().get(index).c(started());
            if (executor.resultRows() == all.rows()) {
                return all;
            }
            int rows = Math.toIntExact(executor.resultRows());
            if (parts.work().grouped() != null) {
                // Nearly every call has another number.
                return all.rows(0, rows);
            }
            Matrix[][] half = products[started() & 1];
            if (half[index] == null) {
                half[index] = new Matrix[Math.toIntExact(all.rows())];
            }
            if (half[index][rows] == null) {
                half[index][rows] = all.rows(0, rows);
            }
            return half[index][rows];
        }

        @Override
        public Optional<Matrix> gathered() {
            return parts.gathered() < 0 || view(started()) != View.PIPELINED
                    ? Optional.empty()
                    : executor.gathered(parts.gathered());
        }

        @Override
        public long elapsedNs() {
            return endNs - executor.startNs();
        }

        @Override
        public long gatherNs() {
            return executor.unoverlappedNs(endNs);
        }

        @Override
        public Timeline timeline() {
            return executor.timeline(elapsedNs());
        }
    }
}
