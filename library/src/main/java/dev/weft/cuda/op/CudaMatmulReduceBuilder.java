package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.DeviceOperands;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.KernelFamily;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Agreement;
import dev.weft.op.ReduceBuilder;
import dev.weft.op.exec.Description;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.Plan;
import dev.weft.plan.Reduction;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.plan.step.StepPlan;
import dev.weft.process.Fallback;
import dev.weft.search.AutoChoice;
import dev.weft.search.Candidate;
import dev.weft.search.Device;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Describes a {@link CudaMatmulReduce}. */
public final class CudaMatmulReduceBuilder
        extends ReduceBuilder<DeviceMatrix, CudaMatmulReduceBuilder> {

    /** The kernels sum so many k at a time: K may be cut between them without a trace. */
    private static final int SUM_QUANTUM = 16;

    /** A copy of fewer bytes costs more than those. */
    private static final long CHUNK_BYTES = 8L << 20;

    /** What the kernel that adds can name. */
    private static final int MOST_PARTS = 64;

    /** Those that send sums; on a GPU they go through host memory. */
    private static final List<Reduction> THROUGH_LANES =
            List.of(Reduction.CHAIN, Reduction.MESH_PUSH);

    private final CudaGroup group;

    CudaMatmulReduceBuilder(Fabric fabric, Gpu gpu, int rank, boolean all) {
        super(fabric, fabric == null ? rank : fabric.rank(), all);
        this.group = new CudaGroup(fabric, gpu, rank);
    }

    @Override
    protected CudaMatmulReduceBuilder self() {
        return this;
    }

    /** This rank's rows of a B in host memory, [its K, N], or [N, its K]; they are copied. */
    public CudaMatmulReduceBuilder b(Matrix b, boolean transposed) {
        group.bs.add(new DeviceOperands.B(b, transposed));
        return side(b.describe(), b.dtype(), b.rows(), b.cols(), transposed);
    }

    /**
     * This rank's rows of a B in device memory, [its K, N], or [N, its K]. It must stay. It is
     * copied if other ranks read it, or if its rows are not aligned to 16 bytes.
     */
    @Override
    public CudaMatmulReduceBuilder b(DeviceMatrix b, boolean transposed) {
        group.bs.add(new DeviceOperands.B(b, transposed));
        return side(b.describe(), b.dtype(), b.rows(), b.cols(), transposed);
    }

    /** This rank's rows of a B that other operators on the GPU may use as well. */
    public CudaMatmulReduceBuilder b(CudaWeights weights) {
        weights.requireNoBlocks("sums over ranks on a GPU");
        group.add(weights);
        return side(
                weights.text(),
                weights.dtype(),
                weights.rows(),
                weights.cols(),
                weights.transposed());
    }

    @Override
    public CudaMatmulReduceBuilder engine(String name) {
        if (CudaEngine.named(name) != CudaEngine.GATED) {
            throw new IllegalArgumentException(
                    "engine %s for sums over ranks on a GPU: expected gated".formatted(name));
        }
        return this;
    }

    /** The longest wait for a chunk; by default that of the fabric, or 30 s. */
    public CudaMatmulReduceBuilder deadline(Duration limit) {
        group.deadline(limit);
        return this;
    }

    /**
     * Sums go through host memory, as they do between hosts, even if the ranks could reach each
     * other's GPUs: for GPUs of one host that cannot, and to try what several hosts do on one. The
     * algorithms {@code chain} and {@code mesh-push} always do this.
     */
    public CudaMatmulReduceBuilder staged() {
        group.stage();
        return this;
    }

    /** Whether sums go from rank to rank through host memory. */
    private boolean isStaged(Description wanted) {
        boolean lanes = THROUGH_LANES.contains(wanted.reduction());
        return group.isStaged() || group.fabric != null && group.fabric.size() > 1 && lanes;
    }

    /** Whether ranks read each other's GPU memory. */
    private boolean isLinked(Description wanted) {
        return group.fabric != null && !isStaged(wanted);
    }

    /** Agrees with the other ranks, loads kernels and reserves memory. Collective. */
    @Override
    public CudaMatmulReduce prepare() {
        return group.prepare(this::prepareAgreed);
    }

    private CudaMatmulReduce prepareAgreed() {
        Description wanted = description();
        check(wanted);
        Order order = order(wanted);
        agree(order);
        if (group.fabric != null) {
            Agreement agreement = new Agreement(group.fabric);
            agreement.on("whether sums go through host memory", bit(isStaged(wanted)));
            // Kernels differ in their tiles and in how they sum; -Dweft.cuda.kernel sets one.
            agreement.on("the number of the kernel", KernelFamily.of(group.gpu).ordinal());
            for (int i = 0; i < group.bs.size(); i++) {
                agreement.on(
                        "whether B number " + i + " is transposed",
                        bit(group.bs.get(i).transposed()));
            }
            agreement.settle();
        }
        List<Candidate> candidates = new ArrayList<>();
        for (ReductionWriter each : tried(wanted, order)) {
            candidates.add(Candidate.of(each, wanted.cut(), 0, 1));
        }
        if (candidates.size() == 1) {
            return operator(wanted, order, candidates.getFirst());
        }
        try (GpuStream stream = GpuStream.create()) {
            AutoChoice.Choice<CudaMatmulReduce> choice =
                    AutoChoice.tried(
                            group.fabric,
                            candidates,
                            trial(
                                    one -> operator(wanted, order, one),
                                    a -> group.fill(a, ORDINARY, stream)));
            CudaMatmulReduce operator = choice.prepared();
            operator.adopt(List.of(), choice.candidates());
            return operator;
        }
    }

    private static long bit(boolean value) {
        return value ? 1 : 0;
    }

    /** The type of products that are not added to others; an epilogue is applied to fp32. */
    private DType sumType(Description wanted) {
        return hasEpilogue() ? DType.FP32 : wanted.outType();
    }

    private void check(Description wanted) {
        group.checkTypes(wanted.aType(), sumType(wanted), wanted.columns());
        long m = wanted.shards().totalRows();
        long k = wanted.sums().kParts().totalRows();
        if (k < 1 || m > CudaGroup.MAX_ROWS) {
            throw new IllegalArgumentException(
                    "a product of M %d and K %d on a GPU: expected K of at least 1, and M of at most %d"
                            .formatted(m, k, CudaGroup.MAX_ROWS));
        }
        boolean linked = isLinked(wanted);
        List<ReductionWriter> possible = List.copyOf(device(wanted).sums());
        // One rank alone sends nothing, whatever the algorithm.
        boolean known = wanted.reduction() instanceof Reduction;
        boolean any = known ? group.fabric != null && group.fabric.size() == 1 : linked;
        if (wanted.reduction() != Reduction.AUTO
                && !any
                && !possible.contains(wanted.reduction())) {
            throw new IllegalArgumentException(
                    "algorithm %s on GPUs %s: expected one of %s"
                            .formatted(
                                    wanted.reduction().label(),
                                    group.fabric == null
                                            ? "with peers in host memory"
                                            : linked
                                                    ? "that reach each other"
                                                    : "that do not reach each other",
                                    possible.stream().map(ReductionWriter::label).toList()));
        }
    }

    /** Sums can only be continued between the steps in which the kernels take k. */
    private Order order(Description wanted) {
        boolean free = wanted.sums().order() == null && wanted.reduction() == Reduction.AUTO;
        Order order =
                wanted.sums().order() == null ? wanted.reduction().order() : wanted.sums().order();
        if (order == Order.BY_RANK_BF16 && wanted.aType() != DType.BF16) {
            throw new IllegalArgumentException(
                    "order %s of %s operands on a GPU: expected bf16 operands"
                            .formatted(order.label(), wanted.aType().label()));
        }
        if (order != Order.WHOLE) {
            checkParts(wanted, order);
            return order;
        }
        if (fits(SUM_QUANTUM)) {
            return order;
        }
        String cut =
                "GPUs sum %d k at a time, and K is cut into %s"
                        .formatted(SUM_QUANTUM, wanted.sums().kParts());
        if (!free) {
            throw new IllegalArgumentException(
                    cut + ": for order whole expected multiples, or order by-rank");
        }
        checkParts(wanted, Order.BY_RANK);
        Fallback.report("sums in order by-rank", cut + "; cut it at multiples for order whole");
        return Order.BY_RANK;
    }

    private static void checkParts(Description wanted, Order order) {
        Shards kParts = wanted.sums().kParts();
        long parts = IntStream.range(0, kParts.ranks()).filter(r -> kParts.rows(r) > 0).count();
        if (parts > MOST_PARTS) {
            throw new IllegalArgumentException(
                    "sums of %d ranks in order %s on a GPU: expected at most %d, or order whole"
                            .formatted(parts, order.label(), MOST_PARTS));
        }
    }

    private List<ReductionWriter> tried(Description wanted, Order order) {
        if (wanted.reduction() != Reduction.AUTO) {
            return List.of(wanted.reduction());
        }
        return List.copyOf(device(wanted).sums(order));
    }

    /** Linked GPUs multiply out of each other's memory; others send sums through the host's. */
    private Device device(Description wanted) {
        return Device.of(
                Hosts.one(wanted.shards().ranks()),
                isLinked(wanted) ? Device.Ability.READ_PEERS : Device.Ability.SEND_SUMS);
    }

    private static Chunks chunks(Description wanted, long tileRows) {
        long n = wanted.allColumns();
        Cut cut = wanted.cut();
        long splits = Math.max(1, cut.splitsPerRank());
        long chunk = Math.max(1, Math.ceilDiv(wanted.shards().maxRows(), splits));
        if (cut.chunkRows() > 0) {
            chunk = cut.chunkRows();
        } else if (cut.splitsPerRank() == 0) {
            // Rows of tiles, enough for a copy but few of a shard.
            long fitting = CHUNK_BYTES / (tileRows * n * Float.BYTES);
            chunk = tileRows * Math.clamp(fitting, 1, Math.max(1, chunk / (4 * tileRows)));
        }
        return Chunks.byRows(wanted.shards(), n, chunk, chunk);
    }

    private CudaMatmulReduce operator(Description wanted, Order order, Candidate candidate) {
        boolean linked = isLinked(wanted);
        DType partType = order == Order.BY_RANK_BF16 ? DType.BF16 : DType.FP32;
        // Only in this order do grids wait for other ranks.
        int share = group.sharers(isStaged(wanted) && order == Order.WHOLE);
        List<GatedKernel> kernels = kernels(wanted, partType, share);
        Chunks chunks = chunks(wanted, kernels.getFirst().shape().rows());
        List<StepPlan> steps = steps(wanted, order, candidate, chunks, linked);
        return new SumAssembly(
                        group,
                        linked,
                        kernels,
                        linked ? kernels(wanted, sumType(wanted), 0) : List.of(),
                        new Plan(candidate.algorithm(), chunks, 1, steps),
                        wanted.sums().kParts(),
                        wanted.aType(),
                        wanted.outType(),
                        wanted.columns(),
                        wanted.sums().all(),
                        epilogueSteps())
                .operator();
    }

    /** What all ranks do. That nothing moves before all is multiplied is the device's affair. */
    private List<StepPlan> steps(
            Description wanted, Order order, Candidate candidate, Chunks chunks, boolean linked) {
        ReductionWriter writer = (ReductionWriter) candidate.algorithm();
        ReductionRequest request =
                new ReductionRequest(
                        chunks, wanted.sums().kParts(), wanted.sums().all(), order, hosts(wanted));
        List<StepPlan> plans;
        if (linked && writer instanceof Reduction) {
            plans = Reduction.linkedSteps(request);
        } else {
            plans = (writer == Reduction.SEQUENTIAL ? Reduction.MESH_PUSH : writer).plans(request);
        }
        agree(writer, plans, request);
        return plans;
    }

    private Hosts hosts(Description wanted) {
        return group.fabric == null ? Hosts.one(wanted.shards().ranks()) : group.fabric.hosts();
    }

    /**
     * @param share ranks whose grids wait on this GPU at the same time; 0 if none waits for another
     */
    private List<GatedKernel> kernels(Description wanted, DType out, int share) {
        List<GatedKernel> kernels = new ArrayList<>();
        for (DeviceOperands.B b : group.bs) {
            kernels.add(
                    GatedKernel.withSums(
                            group.gpu,
                            wanted.aType(),
                            out,
                            b.transposed(),
                            wanted.shards(),
                            wanted.computeWorkers(),
                            share));
        }
        return kernels;
    }
}
