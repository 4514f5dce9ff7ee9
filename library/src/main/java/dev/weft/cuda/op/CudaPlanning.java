package dev.weft.cuda.op;

import dev.weft.cuda.Gpu;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.GpuModel;
import dev.weft.cuda.kernel.TileShape;
import dev.weft.fabric.transport.Agreement;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.exec.Description;
import dev.weft.op.exec.Description.Feature;
import dev.weft.op.exec.EpilogueSteps;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Hosts;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.ArrivalCut;
import dev.weft.plan.cut.Cut;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.search.ArrivalCuts;
import dev.weft.search.Candidate;
import dev.weft.search.Device;
import dev.weft.search.PlanSearch;
import dev.weft.search.Problem;
import dev.weft.sim.Machine;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Set;

/**
 * Works out the plans of all ranks, in agreement with the other ranks, and how this rank cuts the
 * rows that it gets. Used by the thread that prepares the operator.
 *
 * @param fabric null if the peers' rows are in host memory
 * @param staged whether rows travel through the ranks' host memory
 */
record CudaPlanning(
        Transport fabric,
        boolean staged,
        Gpu gpu,
        int rank,
        CudaEngine engine,
        Description wanted) {

    /**
     * The bytes of a chunk, at most: smaller ones cost 4 us each on an H200 (2.5 for the copy, 2
     * for its flag), larger ones leave the grid without work for longer.
     */
    private static final long CHUNK_BYTES = 16L << 20;

    /** The same through host memory, where a chunk is moved three times in a row. */
    private static final long STAGED_CHUNK_BYTES = 4L << 20;

    /** Rows that are worth a tile of their own. */
    private static final long BLOCK_ROWS = 256;

    /** The same for fewer rows. */
    CudaPlanning with(Shards fewer) {
        return new CudaPlanning(fabric, staged, gpu, rank, engine, wanted.with(fewer));
    }

    /** All ranks must want the same; a mismatch names two ranks. Collective. */
    void agree(EpilogueSteps epilogue) {
        if (fabric != null) {
            Agreement agreement = new Agreement(fabric);
            agreement.on("the engine's number", engine.ordinal());
            agreement.on("staging through host memory (0 no, 1 yes)", staged ? 1 : 0);
            epilogue.agree(agreement);
            wanted.agree(agreement, fabric);
            agreement.settle();
        }
    }

    /** On one host all links between GPUs count as equal. */
    private Hosts hosts() {
        return staged ? fabric.hosts() : Hosts.one(wanted.shards().ranks());
    }

    /** The plan of all ranks. Collective. */
    Plan plan(GatherWriter algorithm) {
        Chunks chunks = wanted.chunks() != null ? wanted.chunks() : cut(algorithm);
        GatherRequest request = wanted.request(chunks, lanes(), hosts(), Set.of());
        Plan agreed = Description.agreed(algorithm, request, fabric);
        // All ranks' steps are looked at, several times.
        List<StepPlan> steps = List.copyOf(agreed.steps());
        Plan plan = new Plan(algorithm, agreed.chunks(), agreed.lanes(), steps);
        checkFits(plan);
        return plan;
    }

    private int lanes() {
        return Math.max(1, wanted.commWorkers());
    }

    /** What is to be done, for the search for a plan. */
    Problem problem() {
        return wanted.problem(true, 0, lanes(), hosts());
    }

    /**
     * What auto may choose from, the cheapest first, each algorithm in the cut that suits GPUs.
     * Collective; only the first rank gets prices.
     */
    List<Candidate> prices() {
        boolean oneGpu = fabric != null && !staged && isShared();
        if (fabric != null && fabric.rank() > 0) {
            return List.of();
        }
        Machine machine = GpuModel.of(gpu, fabric != null && !staged);
        PlanSearch search = new PlanSearch(machine, problem());
        List<Candidate> all = new ArrayList<>();
        for (Algorithm algorithm : algorithms(oneGpu)) {
            Chunks chunks = cut(algorithm);
            Cut cut = new Cut(chunks.chunkRows(0), 0, wanted.cut().chunkCols());
            all.add(search.priced(search.candidate(algorithm, cut)));
        }
        if (oneGpu && !wanted.wants(Feature.KEPT)) {
            // Nothing travels: what is left is the product.
            Candidate product = all.getLast();
            double ns = search.price(product, View.COMPUTE_ONLY).ns();
            all.add(Candidate.of(Algorithm.DIRECT, product.cut(), 0, lanes()).priced(ns));
        }
        all.sort(Comparator.comparingDouble(Candidate::predictedNs));
        return all;
    }

    private boolean isShared() {
        long[] gpus = fabric.exchange(gpu.identity());
        return Arrays.stream(gpus).allMatch(id -> id == gpu.identity());
    }

    /**
     * Those that can run here, except direct. With peers in host memory this rank alone copies; if
     * all ranks share one GPU, rows are read in place instead of being copied.
     */
    private List<Algorithm> algorithms(boolean oneGpu) {
        Device device =
                fabric == null || oneGpu
                        ? Device.of(hosts())
                        : Device.of(hosts(), Device.Ability.SEND_ROWS);
        return device.gathers();
    }

    /** Refuses what a GPU cannot run. */
    private void checkFits(Plan agreed) {
        long chunkCols = agreed.chunks().chunkCols();
        if (chunkCols < wanted.k() && !wanted.gathersOnly()) {
            checkCols(chunkCols);
        }
        String name = agreed.name();
        StepPlan plan = agreed.steps().get(rank);
        boolean inPlace = agreed.readsPeersRows();
        boolean reaches = fabric != null && !staged;
        if (plan.reusesBuffers() && !reaches) {
            throw new IllegalArgumentException(
                    "ping-pong buffers with rows in host memory: expected ranks that reach each other's GPUs");
        }
        if (wanted.wants(Feature.SIDE_BY_SIDE) && !reaches) {
            throw new IllegalArgumentException(
                    "shards side by side with rows in host memory: expected ranks that reach each other's GPUs");
        }
        if (wanted.wants(Feature.KEPT) && inPlace) {
            throw new IllegalArgumentException(
                    "plan %s with gathered A kept on a GPU: expected one that gathers A"
                            .formatted(name));
        }
        wanted.checkRuns(name, plan, false);
        boolean gated = engine == CudaEngine.GATED && !plan.reusesBuffers();
        if (wanted.wants(Feature.SUMMARIES) && (staged || !gated)) {
            throw new IllegalArgumentException(
                    "waiting for counters with plan %s, engine %s%s: expected a plan that gathers A and engine gated, whose rows wait on the GPU"
                            .formatted(
                                    name,
                                    engine.label(),
                                    staged ? ", rows that travel through host memory" : ""));
        }
        boolean getsForwards =
                plan.copies().anyMatch(copy -> isGet(plan, copy) && !isFromOwner(copy));
        if (!staged && getsForwards) {
            throw new IllegalArgumentException(
                    "plan %s gets rows that their holder does not own: expected puts, since a GPU cannot see there that they have come"
                            .formatted(name));
        }
        if (fabric == null && (inPlace || !getsAllFromOwners(plan))) {
            throw new IllegalArgumentException(
                    ("algorithm %s with peers in host memory: expected mesh-pull or"
                                    + " sequential, since only this rank can copy")
                            .formatted(name));
        }
        if (staged && inPlace) {
            throw new IllegalArgumentException(
                    "algorithm "
                            + name
                            + " with rows that travel through host memory: expected ring,"
                            + " bidirectional-ring, mesh-push, mesh-pull or sequential, since no"
                            + " GPU reads another's rows");
        }
    }

    /** Whether a transport's own all-gather may replace the lanes between hosts. */
    static boolean leavesGather(Plan plan) {
        return plan.algorithm() == Algorithm.SEQUENTIAL;
    }

    private static void checkCols(long chunkCols) {
        if (chunkCols % TileShape.K_BLOCK != 0) {
            throw new IllegalArgumentException(
                    "chunks of %s columns on a GPU: expected a multiple of %s"
                            .formatted(chunkCols, TileShape.K_BLOCK));
        }
    }

    /** Whether the rank copies all that comes to it, and sends nothing. */
    private static boolean getsAllFromOwners(StepPlan plan) {
        return plan.copies().allMatch(copy -> isGet(plan, copy) && isFromOwner(copy))
                && plan.workers().stream()
                        .flatMap(worker -> worker.steps().stream())
                        .filter(step -> !(step instanceof Step.Copy))
                        .flatMap(step -> step.waits().stream())
                        .allMatch(signal -> signal.by() == plan.rank());
    }

    private static boolean isGet(StepPlan plan, Step.Copy copy) {
        return copy.to().rank() == plan.rank();
    }

    private static boolean isFromOwner(Step.Copy copy) {
        return copy.from().buffer() == StepPlan.A;
    }

    /** Blocks of rows are multiplied as they come: a block is a chunk, or some tiles of it. */
    private Chunks cut(GatherWriter chosen) {
        Cut cut = wanted.cut();
        if (!wanted.gathersOnly()) {
            checkCols(cut.chunkCols());
        }
        if (!cut.givesRows()) {
            cut = new Cut(automaticRows(chosen), 0, cut.chunkCols());
        }
        long blockRows = Math.max(cut.chunkRows(), BLOCK_ROWS);
        if (wanted.wants(Feature.PING_PONG)) {
            // Whole shards are multiplied: blocks only say what one lane brings.
            int splits = Math.max(1, cut.splitsPerRank());
            long shardRows = Math.max(1, wanted.shards().maxRows());
            blockRows = cut.chunkRows() > 0 ? cut.chunkRows() : Math.ceilDiv(shardRows, splits);
        }
        return cut.chunks(wanted.shards(), wanted.k(), 1, blockRows);
    }

    /** Whole shards, if {@link ArrivalCuts} cuts them further. */
    private long automaticRows(GatherWriter chosen) {
        if (engine == CudaEngine.GATED && chosen == Algorithm.MESH_PULL && cutsWhatItGets()) {
            return Math.max(1, wanted.shards().maxRows());
        }
        long most = staged ? STAGED_CHUNK_BYTES : CHUNK_BYTES;
        long rows = most / (wanted.k() * wanted.aType().bytes());
        if (wanted.wants(Feature.PING_PONG)) {
            // A part of each shard for every lane.
            long part = Math.ceilDiv(Math.max(1, wanted.shards().maxRows()), lanes());
            return Math.min(part, Math.max(BLOCK_ROWS, rows));
        }
        return Math.max(1, rows / BLOCK_ROWS) * BLOCK_ROWS;
    }

    /** Whether a rank may decide by itself how what it gets is cut. */
    private boolean cutsWhatItGets() {
        return !staged
                && !wanted.wants(Feature.SUMMARIES)
                && wanted.chunks() == null
                && wanted.commWorkers() <= 1
                && wanted.cut().equals(new Cut(0, 0, 0));
    }

    /**
     * How the rank cuts what it gets for the kernel, if it copies all of it itself; else null.
     *
     * @param n columns of the first product
     * @param kernel the gated one
     */
    ArrivalCut arrivalCut(Plan plan, long n, GatedKernel kernel) {
        StepPlan own = plan.steps().get(rank);
        boolean cuts =
                cutsWhatItGets()
                        && !own.multipliesLast()
                        && own.movers() == 1
                        && plan.chunks().multipliesOneByOne()
                        && getsAllFromOwners(own);
        if (!cuts) {
            return null;
        }
        List<Long> arriving = own.copies().map(copy -> copy.to().rows()).toList();
        long k = wanted.k();
        // Few rows from host memory come in one copy.
        return fabric == null && multipliesTogether(plan, kernel)
                ? ArrivalCuts.none(k, arriving)
                : ArrivalCuts.of(
                        GpuModel.of(gpu, false),
                        kernel.shape().grid(),
                        wanted.aType(),
                        k,
                        n,
                        wanted.shards().rows(rank),
                        arriving);
    }

    /**
     * Whether all rows are multiplied together: of few rows, reading B takes the time, and with
     * tiles for every shard it would be read once for each.
     *
     * @param kernel null if there is no gated one
     */
    boolean multipliesTogether(Plan plan, GatedKernel kernel) {
        return kernel != null
                && plan.chunks().shards().totalRows() <= kernel.rowsTogether()
                && hasOnePlace(plan);
    }

    /** Whether the rows of all shards come to one place of this rank's. */
    boolean hasOnePlace(Plan plan) {
        return !plan.readsPeersRows() && !plan.steps().get(rank).reusesBuffers();
    }
}
