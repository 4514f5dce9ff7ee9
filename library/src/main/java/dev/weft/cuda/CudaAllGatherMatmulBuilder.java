package dev.weft.cuda;

import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.Copies;
import dev.weft.cuda.exec.CopyList;
import dev.weft.cuda.exec.CopyStreams;
import dev.weft.cuda.exec.CublasProduct;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.CudaEngine;
import dev.weft.cuda.exec.CudaPlanning;
import dev.weft.cuda.exec.DeviceEpilogue;
import dev.weft.cuda.exec.DeviceLayout;
import dev.weft.cuda.exec.DeviceOperands;
import dev.weft.cuda.exec.DevicePeers;
import dev.weft.cuda.exec.DeviceProduct;
import dev.weft.cuda.exec.DeviceTimeline;
import dev.weft.cuda.exec.GatedKernel;
import dev.weft.cuda.exec.GatedProduct;
import dev.weft.cuda.exec.HostPeers;
import dev.weft.cuda.exec.LaneCounters;
import dev.weft.cuda.exec.Peers;
import dev.weft.cuda.exec.RingSteps;
import dev.weft.cuda.exec.RowRange;
import dev.weft.cuda.exec.StagedCopies;
import dev.weft.cuda.exec.StagedPeers;
import dev.weft.cuda.exec.StallWord;
import dev.weft.cuda.exec.TileSchedule;
import dev.weft.cuda.exec.TileShape;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.ffi.CudaMemory;
import dev.weft.op.OperatorBuilder;
import dev.weft.op.exec.ArrivalPlace;
import dev.weft.op.exec.Description;
import dev.weft.op.exec.Description.Feature;
import dev.weft.op.exec.EpilogueSteps;
import dev.weft.op.exec.OperatorTrial;
import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Shards;
import dev.weft.search.AutoChoice;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import dev.weft.time.WaitTime;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.LongStream;

/** Describes a {@link CudaAllGatherMatmul}. */
public final class CudaAllGatherMatmulBuilder
        extends OperatorBuilder<DeviceMatrix, CudaAllGatherMatmulBuilder> {

    /** Rows of gathered A and of C are counted with 32 bits on the device. */
    static final long MAX_ROWS = Integer.MAX_VALUE;

    /**
     * Deadlines that a grid waits for rows that come through host memory. There the host watches,
     * and knows slow from dead; the grid's own bound is for a host that does not.
     */
    private static final int STAGED_PATIENCE = 20;

    private final Transport fabric;
    private final Gpu gpu;
    private final int rank;
    private final List<DeviceOperands.Side> operands = new ArrayList<>();
    private CudaEngine engine = CudaEngine.GATED;
    private Duration deadline = Duration.ofSeconds(30);
    private boolean staged;
    private UnaryOperator<DeviceProduct> wrapper = UnaryOperator.identity();

    CudaAllGatherMatmulBuilder(Fabric fabric, Gpu gpu, int rank) {
        super(fabric == null ? 0 : fabric.size());
        this.fabric = fabric == null ? null : Transport.of(fabric);
        this.gpu = gpu;
        this.rank = fabric == null ? rank : fabric.rank();
        if (fabric != null) {
            this.deadline = fabric.deadline();
        }
    }

    @Override
    protected CudaAllGatherMatmulBuilder self() {
        return this;
    }

    /**
     * How the rows of A lie on the ranks, and the type of A's elements: fp16 or bf16, or with
     * {@link #scaledA} e4m3; of a gather without a product any.
     */
    @Override
    public CudaAllGatherMatmulBuilder a(Shards shards, DType dtype) {
        if (rank < 0 || rank >= shards.ranks()) {
            throw new IllegalArgumentException(
                    "rank %d of shards for %d ranks".formatted(rank, shards.ranks()));
        }
        if (shards.totalRows() > MAX_ROWS) {
            throw new IllegalArgumentException(
                    "%d rows: expected at most %d on a GPU"
                            .formatted(shards.totalRows(), MAX_ROWS));
        }
        return super.a(shards, dtype);
    }

    /** A right-hand side in host memory, [K, N], or [N, K] if {@code transposed}; it is copied. */
    public CudaAllGatherMatmulBuilder b(Matrix b, boolean transposed) {
        operands.add(new DeviceOperands.Side(b, null, transposed));
        return side(b.describe(), b.dtype(), b.rows(), b.cols(), transposed);
    }

    /**
     * A right-hand side in device memory, which must stay; it is read where it lies if its rows are
     * aligned to 16 bytes, and copied otherwise.
     */
    @Override
    public CudaAllGatherMatmulBuilder b(DeviceMatrix b, boolean transposed) {
        operands.add(new DeviceOperands.Side(null, b, transposed));
        return side(b.describe(), b.dtype(), b.rows(), b.cols(), transposed);
    }

    /**
     * A right-hand side with scales, in host memory, [K, N], or [N, K] if {@code transposed}; it is
     * copied.
     */
    public CudaAllGatherMatmulBuilder b(ScaledMatrix b, boolean transposed) {
        Matrix values = b.values();
        operands.add(new DeviceOperands.Side(null, b, null, transposed));
        return side(values.describe(), values.dtype(), values.rows(), values.cols(), transposed);
    }

    @Override
    public CudaAllGatherMatmulBuilder engine(String name) {
        this.engine = CudaEngine.named(name);
        return this;
    }

    /** The longest wait for a chunk; by default that of the fabric, or 30 s. */
    public CudaAllGatherMatmulBuilder deadline(Duration limit) {
        this.deadline = checkedDeadline(limit);
        return this;
    }

    static Duration checkedDeadline(Duration limit) {
        if (limit.isNegative() || limit.isZero()) {
            throw new IllegalArgumentException("deadline " + limit + ": expected more than zero");
        }
        return limit;
    }

    /**
     * Rows go through host memory, as they do between hosts, where the ranks could reach each
     * other's GPUs too: for GPUs of one host that cannot, and to try what several hosts do on one.
     */
    public CudaAllGatherMatmulBuilder staged() {
        if (fabric == null) {
            throw new IllegalArgumentException(
                    "staged ranks with peers in host memory: expected ranks of a fabric");
        }
        this.staged = true;
        return this;
    }

    /** For tests, which hold products back. */
    CudaAllGatherMatmulBuilder products(UnaryOperator<DeviceProduct> wrap) {
        this.wrapper = wrap;
        return this;
    }

    private boolean isStaged() {
        return fabric != null && fabric.size() > 1 && (staged || !fabric.sharesMemory());
    }

    /** Agrees with the other ranks, loads kernels and reserves memory. Collective. */
    @Override
    public CudaAllGatherMatmul prepare() {
        try {
            return prepareAgreed();
        } catch (RuntimeException | Error e) {
            if (fabric != null) {
                fabric.fail(e);
            }
            throw e;
        }
    }

    private CudaAllGatherMatmul prepareAgreed() {
        Description wanted = description();
        checkOperands(wanted);
        gpu.bind();
        CudaPlanning planning = new CudaPlanning(fabric, isStaged(), gpu, rank, engine, wanted);
        EpilogueSteps steps = epilogueSteps();
        planning.agree(steps);
        DeviceOperands shared = new DeviceOperands();
        try (GpuStream stream = GpuStream.create()) {
            long m = wanted.shards().totalRows();
            for (int i = 0; i < operands.size(); i++) {
                long n = wanted.columns().get(i);
                DType type = productType(wanted);
                if (wanted.scaling() == null) {
                    shared.add(operands.get(i), type, m, n, stream);
                } else {
                    long k = innerSize(operands.get(i));
                    shared.addScaled(operands.get(i), wanted.scaling(), type, m, k, n, stream);
                }
            }
            if (hasEpilogue()) {
                DeviceEpilogue epilogue = new DeviceEpilogue(gpu, steps, m);
                shared.finish(epilogue, steps.joins(), wanted.outType(), stream);
            } else {
                shared.finish();
            }
            if (wanted.plans() != null || wanted.algorithm() != Algorithm.AUTO) {
                return operator(planning, wanted.algorithm(), shared).adopt(shared, List.of());
            }
            if (wanted.gathersOnly()) {
                // With nothing to multiply meanwhile, each rank gets what it lacks.
                return operator(planning, Algorithm.MESH_PULL, shared).adopt(shared, List.of());
            }
            String settings =
                    "%s %s %s %s %s".formatted(gpu.name(), engine, isStaged(), rank, steps.text());
            AutoChoice.Choice<CudaAllGatherMatmul> choice =
                    new AutoChoice(fabric, planning.problem(), settings)
                            .choose(
                                    planning::prices,
                                    new OperatorTrial<>(
                                            one -> operator(planning, one.algorithm(), shared),
                                            shard -> fill(shard, stream)));
            CudaAllGatherMatmul operator =
                    choice.prepared() == null
                            ? operator(planning, choice.chosen().algorithm(), shared)
                            : choice.prepared();
            return operator.adopt(shared, choice.candidates());
        } catch (RuntimeException | Error e) {
            shared.close();
            throw e;
        }
    }

    /** K of a B with scales. */
    private static long innerSize(DeviceOperands.Side b) {
        Matrix values = b.scaled().values();
        return b.transposed() ? values.cols() : values.rows();
    }

    /** An epilogue is applied to sums in fp32. */
    private DType productType(Description wanted) {
        return hasEpilogue() ? DType.FP32 : wanted.outType();
    }

    /** Something to multiply in a trial. All ranks meet afterwards, since this needs the GPU. */
    private void fill(DeviceMatrix shard, GpuStream stream) {
        long bytes = shard.rows() * shard.pitchBytes();
        if (bytes > 0) {
            CudaMemory.fill8Async(shard.address(), OperatorTrial.ORDINARY, bytes, stream.handle());
            stream.synchronize();
        }
        if (fabric != null) {
            fabric.barrier();
        }
    }

    /** An operator with memory of its own, but for its operands. Collective. */
    private CudaAllGatherMatmul operator(
            CudaPlanning planning, PlanWriter algorithm, DeviceOperands shared) {
        Description wanted = planning.wanted();
        List<RankPlan> all = planning.plans(algorithm);
        RankPlan agreed = all.get(rank);
        Shards shards = wanted.shards();
        boolean gatherFirst = agreed.pacing().gatherFirst();
        List<GatedKernel> kernels = new ArrayList<>();
        if (engine == CudaEngine.GATED) {
            int share = share(!gatherFirst && !agreed.lanes().isEmpty());
            for (DeviceOperands.Side operand : operands) {
                kernels.add(
                        wanted.scaling() != null
                                ? GatedKernel.ofScaled(
                                        gpu,
                                        operand.dtype(),
                                        productType(wanted),
                                        shards,
                                        wanted.computeWorkers(),
                                        share)
                                : GatedKernel.load(
                                        gpu,
                                        wanted.aType(),
                                        productType(wanted),
                                        operand.transposed(),
                                        shards,
                                        wanted.computeWorkers(),
                                        share));
            }
        }
        TileShape shape = kernels.isEmpty() ? null : kernels.getFirst().shape();
        RankPlan plan =
                shape == null
                        ? agreed
                        : planning.refined(agreed, wanted.columns().getFirst(), shape);
        DeviceLayout layout =
                new DeviceLayout(shards, wanted.aType(), wanted.k(), place(wanted, plan));
        CopyList list = CopyList.of(plan);
        Deque<AutoCloseable> made = new ArrayDeque<>();
        try (GpuStream stream = GpuStream.create()) {
            LaneCounters counters = counters(wanted, plan, list);
            int words = list.flags() + (counters == null ? 0 : counters.words());
            CudaBuffers buffers = new CudaBuffers(layout, rank, words, stream);
            made.push(buffers);
            Peers peers = peers(wanted, plan, buffers, shared, list);
            made.push(peers);
            List<List<DeviceMatrix>> places =
                    List.of(
                            sources(plan, layout, buffers, peers, 0),
                            sources(plan, layout, buffers, peers, 1));
            RingSteps ring =
                    plan.storage() == RankPlan.Storage.PING_PONG
                            ? new RingSteps(plan, list, (DevicePeers) peers)
                            : null;
            if (ring != null) {
                made.push(ring);
            }
            Copies copies = copies(wanted, all, plan, peers, layout, list, ring, counters);
            made.push(copies);
            List<DeviceProduct> products = new ArrayList<>();
            List<DeviceProduct> ready = new ArrayList<>();
            Products making =
                    (i, ranges, awaited) ->
                            product(
                                    kernels.isEmpty() ? null : kernels.get(i),
                                    ranges,
                                    awaited,
                                    places,
                                    shared,
                                    i,
                                    buffers,
                                    copies);
            boolean arrives = !list.lanes().isEmpty() && !gatherFirst && ring == null;
            for (int i = 0; i < operands.size(); i++) {
                List<RowRange> ranges = ring == null ? list.ranges() : present(shards);
                products.add(making.of(i, ranges, counters));
                made.push(products.getLast());
                if (arrives) {
                    ready.add(making.of(i, present(shards), null));
                    made.push(ready.getLast());
                } else {
                    ready.add(products.getLast());
                }
            }
            for (RingSteps.Step step : ring == null ? List.<RingSteps.Step>of() : ring.steps()) {
                List<DeviceProduct> ofStep = new ArrayList<>();
                for (int i = 0; i < operands.size(); i++) {
                    ofStep.add(making.of(i, step.ranges(), null));
                }
                ring.add(ofStep);
            }
            Runnable heartbeat = fabric == null ? () -> {} : fabric::worked;
            CallEvents events =
                    new CallEvents(
                            plan,
                            list,
                            peers::worldRank,
                            buffers,
                            counters,
                            heartbeat,
                            fabric == null ? () -> {} : fabric::checkPeers,
                            deadlineNs(),
                            work(wanted));
            made.push(events);
            List<List<DeviceMatrix>> results = results(wanted, shared, peers);
            DeviceTimeline timeline =
                    new DeviceTimeline(
                            plan,
                            list,
                            wanted.aType().bytes(),
                            !isStaged(),
                            kernels.isEmpty() ? null : kernels.getFirst(),
                            arrives && !products.isEmpty() ? products.getFirst() : null);
            made.push(timeline);
            if (fabric != null) {
                fabric.barrier();
            }
            return new CudaAllGatherMatmul(
                    gpu, fabric, all, plan, engine, buffers, shared, peers, copies, products, ready,
                    ring, results, events, timeline);
        } catch (RuntimeException | Error e) {
            closeAll(made, e);
            throw e;
        }
    }

    private static ArrivalPlace place(Description wanted, RankPlan plan) {
        if (plan.storage() == RankPlan.Storage.PING_PONG) {
            return ArrivalPlace.PING_PONG;
        }
        return wanted.wants(Feature.SIDE_BY_SIDE) ? ArrivalPlace.COLUMNS : ArrivalPlace.ROWS;
    }

    static void closeAll(Deque<AutoCloseable> made, Throwable cause) {
        for (AutoCloseable part : made) {
            try {
                part.close();
            } catch (Exception e) {
                cause.addSuppressed(e);
            }
        }
    }

    /** Collective where counters are wanted; else null. */
    private LaneCounters counters(Description wanted, RankPlan plan, CopyList list) {
        if (!wanted.wants(Feature.SUMMARIES)) {
            return null;
        }
        int lanes = plan.lanes().size();
        return LaneCounters.of(plan, list.flags(), fabric == null ? lanes : mostOf(lanes));
    }

    /** Multiply-adds of a call, twice. */
    private static double work(Description wanted) {
        long n = wanted.columns().stream().mapToLong(Long::longValue).sum();
        return 2.0 * wanted.shards().totalRows() * wanted.k() * n;
    }

    /**
     * How many ranks share this GPU's multiprocessors at the same time. Grids that wait for copies
     * must fit side by side and leave some free: within one GPU the driver copies by a kernel.
     */
    private int share(boolean waitsForCopies) {
        if (fabric == null) {
            return 0;
        }
        long[] gpus = fabric.exchange(gpu.identity());
        long sharers = Arrays.stream(gpus).filter(id -> id == gpu.identity()).count();
        return waitsForCopies && sharers > 1 ? (int) sharers : 0;
    }

    /** All rows in their natural order, waiting for nothing: the product alone. */
    private List<RowRange> present(Shards shards) {
        List<RowRange> ranges = new ArrayList<>();
        for (int r = 0; r < shards.ranks(); r++) {
            long rows = shards.rows(r);
            ranges.add(new RowRange(r, 0, shards.firstRow(r), rows, List.of(), false));
        }
        return ranges;
    }

    /** Makes the products of one operator: of which B, of which rows, and after which counters. */
    private interface Products {
        DeviceProduct of(int index, List<RowRange> ranges, LaneCounters awaited);
    }

    /**
     * @param kernel null for cuBLAS
     * @param counters null where rows wait for flags alone
     */
    private DeviceProduct product(
            GatedKernel kernel,
            List<RowRange> ranges,
            LaneCounters counters,
            List<List<DeviceMatrix>> places,
            DeviceOperands shared,
            int index,
            CudaBuffers buffers,
            Copies copies) {
        boolean transposed = operands.get(index).transposed();
        DeviceMatrix b = shared.side(index);
        DeviceMatrix c = shared.product(index);
        if (kernel == null) {
            return wrapper.apply(new CublasProduct(ranges, places, b, transposed, c, copies));
        }
        TileSchedule schedule =
                TileSchedule.of(
                        ranges,
                        c.cols(),
                        kernel.shape(),
                        counters == null ? Map.of() : counters.arriving());
        long flags = buffers.flags();
        StallWord stall = buffers.stall();
        long patience =
                isStaged()
                        ? Math.min(deadlineNs(), Long.MAX_VALUE / 80) * STAGED_PATIENCE
                        : deadlineNs();
        GatedProduct.Scales scales = shared.scales(index);
        return wrapper.apply(
                scales == null
                        ? new GatedProduct(
                                kernel, schedule, places, b, transposed, c, flags, stall, patience)
                        : new GatedProduct(
                                kernel, schedule, places, b, scales, c, flags, stall, patience));
    }

    private long deadlineNs() {
        return WaitTime.nanoseconds(deadline);
    }

    private Peers peers(
            Description wanted,
            RankPlan plan,
            CudaBuffers buffers,
            DeviceOperands shared,
            CopyList list) {
        long[] own = {buffers.address(0), buffers.address(1)};
        DType aType = wanted.aType();
        if (isStaged()) {
            return new StagedPeers(fabric, plan.chunks(), aType, own, buffers.flags());
        }
        long rows = wanted.shards().totalRows();
        if (fabric == null) {
            return new HostPeers(rank, aType, rows, wanted.k(), own, buffers.flags());
        }
        int results = wanted.wants(Feature.SHARED) ? shared.count() : 0;
        LongStream.Builder shown = LongStream.builder();
        shown.add(own[0]).add(own[1]).add(buffers.flags());
        for (int i = 0; i < results; i++) {
            shown.add(shared.result(i).address());
        }
        return new DevicePeers(
                fabric,
                gpu,
                mostOf(list.lanes().size()),
                mostOf(list.flags()),
                shown.build().toArray());
    }

    /** By number and rank the products that all may read; null where none may. Collective. */
    private List<List<DeviceMatrix>> results(
            Description wanted, DeviceOperands shared, Peers peers) {
        if (!wanted.wants(Feature.SHARED) || !(peers instanceof DevicePeers linked)) {
            return null;
        }
        List<List<DeviceMatrix>> all = new ArrayList<>();
        for (int i = 0; i < shared.count(); i++) {
            long[] cols = fabric.exchange(shared.result(i).cols());
            long[] types = fabric.exchange(shared.result(i).dtype().ordinal());
            List<DeviceMatrix> ofRanks = new ArrayList<>();
            for (int r = 0; r < cols.length; r++) {
                DType type = DType.values()[Math.toIntExact(types[r])];
                long pitch = DeviceMatrix.alignedPitch(type, cols[r]);
                long m = wanted.shards().totalRows();
                ofRanks.add(new DeviceMatrix(linked.result(r, i), type, m, cols[r], pitch));
            }
            all.add(ofRanks);
        }
        return all;
    }

    private Copies copies(
            Description wanted,
            List<RankPlan> all,
            RankPlan plan,
            Peers peers,
            DeviceLayout layout,
            CopyList list,
            RingSteps ring,
            LaneCounters counters) {
        boolean awaited = engine == CudaEngine.CUBLAS;
        if (peers instanceof StagedPeers through) {
            boolean fetched =
                    all.stream()
                            .flatMap(one -> one.lanes().stream())
                            .flatMap(lane -> lane.transfers().stream())
                            .anyMatch(t -> t.initiator() == Transfer.Initiator.RECEIVER);
            long productNs = CallEvents.productNs(work(wanted));
            return new StagedCopies(
                    gpu, through, plan, wanted.aType(), fetched, awaited, productNs);
        }
        return new CopyStreams(peers, plan, layout, list, ring, counters, awaited, deadlineNs());
    }

    /** The largest of all ranks' numbers: what ranks show each other must be laid out alike. */
    private int mostOf(int number) {
        return (int) Arrays.stream(fabric.exchange(number)).max().orElse(number);
    }

    /** By rank: the matrix that the product reads that rank's rows from. */
    private List<DeviceMatrix> sources(
            RankPlan plan, DeviceLayout layout, CudaBuffers buffers, Peers peers, int parity) {
        List<DeviceMatrix> sources = new ArrayList<>();
        boolean inPlace = plan.storage() == RankPlan.Storage.IN_PLACE;
        int[] slots = CopyList.slots(plan);
        for (int r = 0; r < plan.ranks(); r++) {
            sources.add(
                    inPlace
                            ? layout.shard(r, r, peers.buffer(r, parity))
                            : buffers.arrived(r, slots[r], parity));
        }
        return sources;
    }

    private void checkOperands(Description wanted) {
        if (wanted.scaling() != null && engine != CudaEngine.GATED) {
            throw new IllegalArgumentException(
                    "A of e4m3 with engine cublas: expected engine gated");
        }
        if (!wanted.gathersOnly() && wanted.scaling() == null) {
            checkTypes(wanted.aType(), productType(wanted), wanted.columns(), operands);
        }
    }

    /** Refuses what no kernel multiplies. */
    static void checkTypes(
            DType aType, DType outType, List<Long> columns, List<DeviceOperands.Side> operands) {
        if (aType == DType.FP32) {
            throw new IllegalArgumentException(
                    "A of fp32 on the GPU: expected fp16 or bf16 (fp32 runs on the CPU)");
        }
        if (outType != DType.FP32 && outType != aType) {
            throw new IllegalArgumentException(
                    "output of %s for inputs of %s: expected fp32 or the inputs' type"
                            .formatted(outType.label(), aType.label()));
        }
        for (int i = 0; i < operands.size(); i++) {
            DType type = operands.get(i).dtype();
            if (type != aType || columns.get(i) < 1) {
                throw new IllegalArgumentException(
                        "B number %d is %s with N = %d: expected %s and N of at least 1"
                                .formatted(i, type.label(), columns.get(i), aType.label()));
            }
        }
    }
}
