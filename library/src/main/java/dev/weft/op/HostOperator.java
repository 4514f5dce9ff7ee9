package dev.weft.op;

import dev.weft.exec.host.HostExecutor;
import dev.weft.fabric.FabricException;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.plan.Plan;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.util.List;
import java.util.Optional;

/** An operator on the CPU: whatever its plan does, one executor runs it. */
abstract sealed class HostOperator extends Operator<Matrix>
        permits AllGatherMatmul, MatmulReduceScatter, MatmulAllReduce {

    private final Transport fabric;
    private final Parts parts;
    private final HostExecutor executor;
    private final Outcome outcome;
    private OperatorResources adopted;

    /**
     * The parts of one operator.
     *
     * @param sides this rank's right-hand sides
     * @param gathered the buffer that holds gathered A for the caller; -1 if it is not kept
     * @param sharedResults whether peers may read products and gathered A
     * @param resources what is closed with the operator
     */
    record Parts(
            Plan plan,
            HostExecutor.Work work,
            List<SharedB.Packed> sides,
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
        this.executor = new HostExecutor(parts.work(), parts.resources().arena(), this::failed);
        this.outcome = new Outcome();
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
        return executor.reachableBytes();
    }

    @Override
    public final int computeWorkers() {
        return executor.workers();
    }

    @Override
    public final Matrix nextShard() {
        checkUsable();
        try {
            return executor.awaitNextA();
        } catch (RuntimeException e) {
            failed(e);
            throw withReport(e);
        }
    }

    @Override
    public final Result<Matrix> callInPlace(View view) {
        queue(null, view);
        return pending().await();
    }

    @Override
    public final PendingCall<Matrix> start(Matrix a) {
        Matrix place = executor.matrix(fabric.rank(), StepPlan.A, 0);
        if (a.rows() != place.rows() || a.cols() != place.cols() || a.dtype() != place.dtype()) {
            throw new IllegalArgumentException(
                    "A of rank %d is %s: expected %s"
                            .formatted(
                                    fabric.worldRank(fabric.rank()),
                                    a.describe(),
                                    place.describe()));
        }
        queue(a, View.PIPELINED);
        return pending();
    }

    private void queue(Matrix a, View view) {
        checkUsable();
        parts.work().epilogue().begin();
        try {
            executor.stage(a);
        } catch (FabricException e) {
            failed(e);
            throw withReport(e);
        }
        // Only now: if the copy throws, nothing has started, and the peers still wait for this
        // call.
        executor.start(begin(view), view);
    }

    @Override
    public final void replaceB(int index, Matrix b) {
        checkNotUnderWay();
        try {
            new SharedB(fabric, parts.work().gemm()).replace(index, parts.sides().get(index), b);
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
        if (parts.sharedResults() && !hasFailed()) {
            executor.publishEnd(call);
        }
    }

    @Override
    public final Matrix peerProduct(int rank, int index) {
        Matrix[][] peers = parts.work().results().get(index).peers();
        return awaitResult(
                peers == null ? null : peers[started() % HostExecutor.COPIES][rank], rank);
    }

    @Override
    public final Matrix peerGathered(int rank) {
        boolean kept = parts.sharedResults() && lastResult().gathered().isPresent();
        return awaitResult(kept ? executor.matrix(rank, parts.gathered(), started()) : null, rank);
    }

    /** The result of {@code rank}, once it is complete; null if it cannot be reached. */
    private Matrix awaitResult(Matrix result, int rank) {
        lastResult();
        if (result == null) {
            throw unreachable(
                    fabric.worldRank(rank), parts.sharedResults() ? "ranks of one host" : SHARED);
        }
        try {
            executor.awaitEnd(rank, started());
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
        executor.close();
        parts.resources().close();
        if (adopted != null) {
            adopted.close();
        }
    }

    /** One object for all calls. */
    private final class Outcome implements Result<Matrix> {

        private final List<Optional<Matrix>> gathered;
        private long endNs;

        Outcome() {
            // Made once for each copy: reading a result allocates nothing.
            this.gathered =
                    parts.gathered() < 0
                            ? List.of()
                            : List.of(Optional.of(gathered(0)), Optional.of(gathered(1)));
        }

        private Matrix gathered(int call) {
            return executor.matrix(fabric.rank(), parts.gathered(), call);
        }

        @Override
        public Matrix product(int index) {
            return parts.work().results().get(index).c(started());
        }

        @Override
        public Optional<Matrix> gathered() {
            return gathered.isEmpty() || view(started()) != View.PIPELINED
                    ? Optional.empty()
                    : gathered.get(started() % HostExecutor.COPIES);
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
