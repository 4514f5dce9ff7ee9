package dev.weft.cuda;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.plan.Transfer;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.time.WaitTime;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;

/**
 * Describes a {@link CudaAllGatherMatmul}. All ranks describe the same one, except for B: with B
 * sharded by columns each rank gives its own columns. Used by one thread.
 */
public final class CudaAllGatherMatmulBuilder {

    /** Rows of gathered A and of C are counted with 32 bits on the device. */
    private static final long MAX_ROWS = Integer.MAX_VALUE;

    /**
     * Deadlines that a grid waits for rows that come through host memory. There the host watches,
     * and knows slow from dead; the grid's own bound is for a host that does not.
     */
    private static final int STAGED_PATIENCE = 20;

    private final Transport fabric;
    private final Gpu gpu;
    private final int rank;
    private final List<CudaOperand> operands = new ArrayList<>();
    private Shards shards;
    private DType aType;
    private DType outType;
    private PlanWriter algorithm = Algorithm.AUTO;
    private List<RankPlan> plans;
    private CudaEngine engine = CudaEngine.GATED;
    private long chunkRows;
    private int splitsPerRank;
    private long chunkCols;
    private int computeBlocks;
    private int copyStreams;
    private Duration deadline = Duration.ofSeconds(30);
    private boolean staged;

    CudaAllGatherMatmulBuilder(Fabric fabric, Gpu gpu, int rank) {
        this.fabric = fabric == null ? null : Transport.of(fabric);
        this.gpu = gpu;
        this.rank = fabric == null ? rank : fabric.rank();
        if (fabric != null) {
            this.deadline = fabric.deadline();
        }
    }

    /** How the rows of A lie on the ranks, and the type of A's elements: fp16 or bf16. */
    public CudaAllGatherMatmulBuilder a(Shards shards, DType dtype) {
        int ranks = fabric == null ? shards.ranks() : fabric.size();
        if (shards.ranks() != ranks || rank < 0 || rank >= ranks) {
            throw new IllegalArgumentException(
                    "shards for "
                            + shards.ranks()
                            + " ranks, of which this is rank "
                            + rank
                            + ", in a group of "
                            + ranks);
        }
        if (dtype == DType.FP32) {
            throw new IllegalArgumentException(
                    "A of fp32 on the GPU: expected fp16 or bf16 (fp32 runs on the CPU)");
        }
        if (shards.totalRows() > MAX_ROWS) {
            throw new IllegalArgumentException(
                    shards.totalRows() + " rows: expected at most " + MAX_ROWS + " on a GPU");
        }
        this.shards = shards;
        this.aType = dtype;
        return this;
    }

    /** A right-hand side in host memory, [K, N], or [N, K] if {@code transposed}; it is copied. */
    public CudaAllGatherMatmulBuilder b(Matrix b, boolean transposed) {
        operands.add(new CudaOperand(b, null, transposed));
        return this;
    }

    /**
     * A right-hand side in device memory, which must stay; it is read where it lies if its rows are
     * aligned to 16 bytes, and copied otherwise.
     */
    public CudaAllGatherMatmulBuilder b(DeviceMatrix b, boolean transposed) {
        operands.add(new CudaOperand(null, b, transposed));
        return this;
    }

    /** The type of the products: fp32, or the type of A, which is the default. */
    public CudaAllGatherMatmulBuilder output(DType dtype) {
        this.outType = dtype;
        return this;
    }

    public CudaAllGatherMatmulBuilder algorithm(PlanWriter algorithm) {
        this.algorithm = algorithm;
        this.plans = null;
        return this;
    }

    /** The plans of all ranks, in rank order, in place of an algorithm, a cut and copy streams. */
    public CudaAllGatherMatmulBuilder plans(List<RankPlan> plans) {
        this.plans = plans;
        return this;
    }

    public CudaAllGatherMatmulBuilder engine(CudaEngine engine) {
        this.engine = engine;
        return this;
    }

    /** Chunks of this many rows, instead of Weft's own choice. */
    public CudaAllGatherMatmulBuilder chunkRows(long rows) {
        this.chunkRows = positive("chunk rows", rows);
        return this;
    }

    /** Every shard in this many chunks, instead of Weft's own choice. */
    public CudaAllGatherMatmulBuilder splitsPerRank(int splits) {
        this.splitsPerRank = (int) positive("splits per rank", splits);
        return this;
    }

    /** Chunks of this many columns; by default chunks are whole rows. */
    public CudaAllGatherMatmulBuilder chunkCols(long cols) {
        this.chunkCols = positive("chunk columns", cols);
        return this;
    }

    /** Thread blocks of the product's grid; by default as many as the GPU holds. */
    public CudaAllGatherMatmulBuilder computeBlocks(int blocks) {
        this.computeBlocks = (int) positive("compute blocks", blocks);
        return this;
    }

    /** Streams that copy; by default one, whose copies have the whole link each. */
    public CudaAllGatherMatmulBuilder copyStreams(int streams) {
        this.copyStreams = (int) positive("copy streams", streams);
        return this;
    }

    /** The longest wait for a chunk; by default that of the fabric, or 30 s. */
    public CudaAllGatherMatmulBuilder deadline(Duration limit) {
        if (limit.isNegative() || limit.isZero()) {
            throw new IllegalArgumentException("deadline " + limit + ": expected more than zero");
        }
        this.deadline = limit;
        return this;
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

    private boolean isStaged() {
        return fabric != null && fabric.size() > 1 && (staged || !fabric.sharesMemory());
    }

    private static long positive(String what, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(value + " " + what + ": expected at least one");
        }
        return value;
    }

    /** Agrees with the other ranks, loads kernels and reserves memory. Collective. */
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
        long k = checkOperands();
        gpu.bind();
        CudaPlanning planning =
                new CudaPlanning(
                        fabric,
                        isStaged(),
                        gpu,
                        rank,
                        shards,
                        aType,
                        new CudaPlanning.Request(
                                algorithm,
                                plans,
                                engine,
                                chunkRows,
                                splitsPerRank,
                                chunkCols,
                                copyStreams));
        List<RankPlan> all = planning.agreedPlans(k);
        RankPlan agreed = all.get(rank);
        boolean gatherFirst = agreed.pacing().gatherFirst();
        DType out = outType == null ? aType : outType;
        List<GatedKernel> kernels = new ArrayList<>();
        if (engine == CudaEngine.GATED) {
            int share = share(!gatherFirst && !agreed.lanes().isEmpty());
            for (CudaOperand operand : operands) {
                kernels.add(
                        GatedKernel.load(
                                gpu,
                                aType,
                                out,
                                operand.transposed(),
                                shards,
                                computeBlocks,
                                share));
            }
        }
        TileShape shape = kernels.isEmpty() ? null : kernels.getFirst().shape();
        RankPlan plan = planning.refined(agreed, operands.getFirst().n(), shape);
        CopyList list = CopyList.of(plan);
        Deque<AutoCloseable> made = new ArrayDeque<>();
        try (GpuStream stream = GpuStream.create()) {
            CudaBuffers buffers =
                    new CudaBuffers(shards, aType, k, list.flags(), gatherFirst, stream);
            made.push(buffers);
            Peers peers = peers(plan, buffers, k, list);
            made.push(peers);
            List<List<DeviceMatrix>> places =
                    List.of(sources(plan, buffers, peers, 0), sources(plan, buffers, peers, 1));
            Copies copies = copies(all, plan, peers, k, list);
            made.push(copies);
            List<DeviceProduct> products = new ArrayList<>();
            List<DeviceProduct> ready = new ArrayList<>();
            boolean arrives = !list.lanes().isEmpty() && !gatherFirst;
            for (int i = 0; i < operands.size(); i++) {
                DeviceMatrix b = onDevice(operands.get(i), buffers, stream);
                DeviceMatrix c =
                        buffers.matrix(out, shards.totalRows(), operands.get(i).n(), stream);
                buffers.addProduct(c);
                GatedKernel kernel = kernels.isEmpty() ? null : kernels.get(i);
                products.add(product(kernel, list.ranges(), places, b, i, c, buffers, copies));
                made.push(products.getLast());
                if (arrives) {
                    ready.add(product(kernel, present(), places, b, i, c, buffers, copies));
                    made.push(ready.getLast());
                } else {
                    ready.add(products.getLast());
                }
            }
            CallEvents events = new CallEvents(plan, list, peers, buffers, deadlineNs(), work(k));
            made.push(events);
            if (fabric != null) {
                fabric.barrier();
            }
            return new CudaAllGatherMatmul(
                    gpu, plan, engine, buffers, peers, copies, products, ready, events);
        } catch (RuntimeException | Error e) {
            closeAll(made, e);
            throw e;
        }
    }

    private static void closeAll(Deque<AutoCloseable> made, Throwable cause) {
        for (AutoCloseable part : made) {
            try {
                part.close();
            } catch (Exception e) {
                cause.addSuppressed(e);
            }
        }
    }

    /** Multiply-adds of a call, twice. */
    private double work(long k) {
        return 2.0 * shards.totalRows() * k * operands.stream().mapToLong(CudaOperand::n).sum();
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
    private List<RowRange> present() {
        List<RowRange> ranges = new ArrayList<>();
        for (int r = 0; r < shards.ranks(); r++) {
            long rows = shards.rows(r);
            ranges.add(new RowRange(r, 0, shards.firstRow(r), rows, List.of(), false));
        }
        return ranges;
    }

    /**
     * @param kernel null for cuBLAS
     */
    private DeviceProduct product(
            GatedKernel kernel,
            List<RowRange> ranges,
            List<List<DeviceMatrix>> places,
            DeviceMatrix b,
            int index,
            DeviceMatrix c,
            CudaBuffers buffers,
            Copies copies) {
        boolean transposed = operands.get(index).transposed();
        if (kernel == null) {
            return new CublasProduct(ranges, places, b, transposed, c, copies);
        }
        buffers.computeBlocks(kernel.blocks());
        return new GatedProduct(
                kernel,
                TileSchedule.of(ranges, operands.get(index).n(), kernel.shape()),
                places,
                b,
                transposed,
                c,
                buffers.flags(),
                buffers.stall(),
                isStaged()
                        ? Math.min(deadlineNs(), Long.MAX_VALUE / 80) * STAGED_PATIENCE
                        : deadlineNs());
    }

    private long deadlineNs() {
        return WaitTime.nanoseconds(deadline);
    }

    private Peers peers(RankPlan plan, CudaBuffers buffers, long k, CopyList list) {
        long[] own = {buffers.gatheredAddress(0), buffers.gatheredAddress(1)};
        if (isStaged()) {
            StagedLayout layout = new StagedLayout(plan.chunks(), aType);
            return new StagedPeers(fabric, layout, own, buffers.flags());
        }
        return fabric == null
                ? new HostPeers(
                        rank, shards.ranks(), aType, shards.totalRows(), k, own, buffers.flags())
                : new DevicePeers(
                        fabric,
                        gpu,
                        mostOf(list.lanes().size()),
                        mostOf(list.flags()),
                        own[0],
                        own[1],
                        buffers.flags());
    }

    private Copies copies(List<RankPlan> all, RankPlan plan, Peers peers, long k, CopyList list) {
        boolean awaited = engine == CudaEngine.CUBLAS;
        if (peers instanceof StagedPeers through) {
            boolean fetched =
                    all.stream()
                            .flatMap(one -> one.lanes().stream())
                            .flatMap(lane -> lane.transfers().stream())
                            .anyMatch(t -> t.initiator() == Transfer.Initiator.RECEIVER);
            return new StagedCopies(
                    gpu, through, plan, fetched, awaited, CallEvents.productNs(work(k)));
        }
        return new CopyStreams(
                peers, plan, aType, list.lanes(), list.flags(), awaited, deadlineNs());
    }

    /** The largest of all ranks' numbers: what ranks show each other must be laid out alike. */
    private int mostOf(int number) {
        return (int) Arrays.stream(fabric.exchange(number)).max().orElse(number);
    }

    /** By rank: the matrix that the product reads that rank's rows from. */
    private List<DeviceMatrix> sources(
            RankPlan plan, CudaBuffers buffers, Peers peers, int parity) {
        List<DeviceMatrix> sources = new ArrayList<>();
        boolean inPlace = plan.storage() == RankPlan.Storage.IN_PLACE;
        for (int r = 0; r < shards.ranks(); r++) {
            DeviceMatrix own = buffers.shard(r, parity);
            long offset = own.address() - buffers.gatheredAddress(parity);
            long base = inPlace ? peers.buffer(r, parity) : buffers.gatheredAddress(parity);
            sources.add(
                    new DeviceMatrix(
                            base + offset, own.dtype(), own.rows(), own.cols(), own.rowPitch()));
        }
        return sources;
    }

    private DeviceMatrix onDevice(CudaOperand operand, CudaBuffers buffers, GpuStream stream) {
        if (operand.device() != null && operand.device().isAligned()) {
            return operand.device();
        }
        DeviceMatrix copy = buffers.matrix(operand.dtype(), operand.rows(), operand.cols(), stream);
        if (operand.device() != null) {
            copy.copyFrom(operand.device(), stream);
            stream.synchronize();
        } else {
            copy.upload(operand.host(), stream);
        }
        return copy;
    }

    private long checkOperands() {
        if (shards == null || operands.isEmpty()) {
            throw new IllegalArgumentException("an operator needs a(...) and at least one b(...)");
        }
        if (outType != null && outType != DType.FP32 && outType != aType) {
            throw new IllegalArgumentException(
                    "output of "
                            + outType.label()
                            + " for inputs of "
                            + aType.label()
                            + ": expected fp32 or the inputs' type");
        }
        long k = operands.getFirst().k();
        for (int i = 0; i < operands.size(); i++) {
            CudaOperand b = operands.get(i);
            if (b.dtype() != aType || b.k() != k || k < 1 || b.n() < 1) {
                throw new IllegalArgumentException(
                        "B number "
                                + i
                                + " is "
                                + b.describe()
                                + (b.transposed() ? " transposed" : "")
                                + ": expected K = "
                                + Math.max(k, 1)
                                + ", N of at least 1 and "
                                + aType.label());
            }
        }
        return k;
    }
}
