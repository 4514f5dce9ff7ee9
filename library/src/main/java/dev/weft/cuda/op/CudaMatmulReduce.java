package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.CudaEngine;
import dev.weft.cuda.exec.HostPeerSums;
import dev.weft.cuda.exec.HostSums;
import dev.weft.cuda.exec.Peers;
import dev.weft.cuda.exec.SumRun;
import dev.weft.cuda.kernel.DeviceEpilogue;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Result;
import dev.weft.op.Timeline;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * C = sum over the ranks of A_r x B_r on a GPU, of which this rank gets its rows of C, or all. Rank
 * r has A_r, [M, its K], and B_r, [its K, N]; M and K may be cut unevenly, and a part may be empty.
 *
 * <p>By default the result has the bits of the product of all of A and B on one GPU of the same
 * kind, for any number of ranks and any cut of K at multiples of 16, and whatever arrives when
 * ({@link dev.weft.plan.Reduction.Order#WHOLE}). It is rounded once, at the end. A call queues its
 * work on the caller's stream and returns; between hosts, once all that it sends has left.
 *
 * <p>Every call writes its result to the same place: work that uses it must be queued behind the
 * call, before the next one.
 */
public final class CudaMatmulReduce extends CudaOperator {

    private final SumRun sums;
    private final DeviceEpilogue epilogue;
    private final DType aType;
    private final boolean all;
    private final List<AutoCloseable> memory;
    private final Outcome outcome = new Outcome();

    /** Takes ownership of all arguments, and closes them. */
    CudaMatmulReduce(
            Gpu gpu,
            Transport fabric,
            List<RankPlan> plans,
            RankPlan plan,
            List<StepPlan> stepPlans,
            boolean all,
            SumRun.Finish finish,
            CudaBuffers buffers,
            Peers peers,
            SumRun sums,
            List<AutoCloseable> memory,
            CallEvents events) {
        super(gpu, fabric, plans, plan, stepPlans, buffers, peers, events, 1);
        this.sums = sums;
        this.epilogue = finish.epilogue();
        this.all = all;
        this.aType = buffers.aType();
        this.memory = List.copyOf(memory);
    }

    /** What auto chose this operator from. */
    CudaMatmulReduce among(List<dev.weft.search.Candidate> candidates) {
        chosenFrom(candidates);
        return this;
    }

    /**
     * Ranks on GPUs, one or several to a GPU. Between hosts sums go through pinned host memory.
     *
     * @param all whether every rank gets all rows (an all-reduce), or each its own
     */
    public static CudaMatmulReduceBuilder on(Fabric fabric, Gpu gpu, boolean all) {
        return new CudaMatmulReduceBuilder(fabric, gpu, 0, all);
    }

    /**
     * This rank alone on the GPU. What its peers send it, and what it sends them, lies in pinned
     * host memory: {@link #incoming} and {@link #outgoing}.
     *
     * @param all whether every rank gets all rows (an all-reduce), or each its own
     */
    public static CudaMatmulReduceBuilder withHostPeers(Gpu gpu, int rank, boolean all) {
        return new CudaMatmulReduceBuilder(null, gpu, rank, all);
    }

    @Override
    DeviceMatrix place(int parity) {
        return buffers.gathered(parity);
    }

    @Override
    void checkFits(DeviceMatrix a) {
        DeviceMatrix place = place(0);
        if (a.rows() != place.rows() || a.cols() != place.cols() || a.dtype() != aType) {
            throw new IllegalArgumentException(
                    "A of rank %d is %s: expected %s"
                            .formatted(
                                    peers.worldRank(plan().rank()),
                                    a.describe(),
                                    place.describe()));
        }
    }

    @Override
    void beginCall() {
        if (epilogue != null) {
            epilogue.begin();
        }
    }

    @Override
    boolean sharesResults() {
        return false;
    }

    /** Sums that peers add have one place. */
    @Override
    boolean isReadAfter(int call) {
        return true;
    }

    @Override
    void run(int call, View view, GpuStream stream) {
        sums.run(call, view, stream, events);
    }

    @Override
    void ended(int call) {
        outcome.call = call;
        outcome.endNs = System.nanoTime();
        outcome.elapsedNs = events.elapsedNs(call);
        boolean productFirst = plan().pacing().gatherFirst() && view(call) == View.PIPELINED;
        outcome.reductionNs = productFirst ? outcome.elapsedNs - events.gatherNs(call) : 0;
    }

    @Override
    List<FailureReport.Sent> sent() {
        return sums.sent(started());
    }

    @Override
    void closeParts() {
        sums.close();
    }

    @Override
    void closeMemory() {
        SumRun.closeAll(memory);
    }

    @Override
    public String engine() {
        return CudaEngine.GATED.label();
    }

    @Override
    public boolean sameBitsForAnyRows() {
        return true;
    }

    /** Thread blocks of the product's grid; 0 if this rank multiplies nothing. */
    @Override
    public int computeWorkers() {
        return sums.blocks();
    }

    /** Copies that a call of this rank issues. */
    public int copiesPerCall() {
        return sums.copies();
    }

    /**
     * The place of the result with B number {@code index}, [M or this rank's rows, N], for work
     * that is queued behind a call before it has ended; holds until the next call.
     */
    public DeviceMatrix product(int index) {
        return sums.product(index);
    }

    /**
     * With host peers: the sums that they send to a slot of this rank ({@link
     * dev.weft.plan.Reduction}), to be written while no call is under way. Row r is row r of C.
     * Empty if nothing arrives in that slot.
     */
    public Optional<Matrix> incoming(int index, int slot) {
        return host().incoming(index, slot);
    }

    /** With host peers: the sums that this rank sends to a slot of theirs, if it sends any. */
    public Optional<Matrix> outgoing(int index, int slot) {
        return host().outgoing(index, slot);
    }

    private HostPeerSums host() {
        if (sums instanceof HostSums host && host.exchange() instanceof HostPeerSums peerSums) {
            return peerSums;
        }
        throw new IllegalStateException("the peers are ranks of their own, not host memory");
    }

    @Override
    public DeviceMatrix peerProduct(int rank, int index) {
        throw unreachable(peers.worldRank(rank), "results of this rank alone");
    }

    @Override
    public DeviceMatrix peerGathered(int rank) {
        throw unreachable(peers.worldRank(rank), "results of this rank alone");
    }

    @Override
    protected Result<DeviceMatrix> result() {
        return outcome;
    }

    private final class Outcome implements Result<DeviceMatrix> {

        private int call;
        private long endNs;
        private long elapsedNs;
        private long reductionNs;

        @Override
        public DeviceMatrix product(int index) {
            return sums.product(index);
        }

        @Override
        public Optional<DeviceMatrix> gathered() {
            return Optional.empty();
        }

        @Override
        public long elapsedNs() {
            return elapsedNs;
        }

        /** What came after the product, if nothing overlaps. */
        @Override
        public long gatherNs() {
            return reductionNs;
        }

        /**
         * Every tile by the device's clock, when sums were added and rounded, and every copy, in
         * part by its flag and in part at one rate in between. If another call was started behind
         * it, only the begin and the end are known and, if nothing overlaps, the time in between.
         */
        @Override
        public Timeline timeline() {
            Timeline measured =
                    call == started() ? sums.timeline(call, view(call), events, endNs) : null;
            return measured == null ? estimated() : measured;
        }

        private Timeline estimated() {
            long multipliedNs = elapsedNs - reductionNs;
            long startNs = endNs - elapsedNs;
            List<Timeline.Track> tracks = new ArrayList<>();
            if (moves()) {
                long from = reductionNs > 0 ? multipliedNs : 0;
                tracks.add(track("copies", Timeline.Kind.TRANSFER, from, elapsedNs));
            }
            if (multiplies()) {
                tracks.add(track("compute", Timeline.Kind.COMPUTE, 0, multipliedNs));
            }
            return new Timeline(plan().rank(), startNs, elapsedNs, tracks);
        }

        private boolean moves() {
            return steps().stream()
                    .flatMap(plan -> plan.workers().stream())
                    .flatMap(worker -> worker.steps().stream())
                    .filter(Step.Copy.class::isInstance)
                    .map(Step.Copy.class::cast)
                    .anyMatch(
                            copy ->
                                    copy.from().rank() == plan().rank()
                                            || copy.to().rank() == plan().rank());
        }

        private boolean multiplies() {
            return steps().get(plan().rank()).workers().stream()
                    .flatMap(worker -> worker.steps().stream())
                    .anyMatch(Step.Multiply.class::isInstance);
        }

        private Timeline.Track track(String name, Timeline.Kind kind, long startNs, long finishNs) {
            Shards shards = plan().chunks().shards();
            int rank = plan().rank();
            long rows = all ? shards.totalRows() : shards.rows(rank);
            return new Timeline.Track(
                    name,
                    List.of(Timeline.Span.local(kind, rank, rank, 0, rows, startNs, finishNs)));
        }
    }
}
