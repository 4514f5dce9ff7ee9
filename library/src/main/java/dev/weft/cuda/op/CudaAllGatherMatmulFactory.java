package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.ArrivalPlace;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.Copies;
import dev.weft.cuda.exec.CopyList;
import dev.weft.cuda.exec.CopyStreams;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.CudaEngine;
import dev.weft.cuda.exec.DeviceLayout;
import dev.weft.cuda.exec.DeviceOperands;
import dev.weft.cuda.exec.DevicePeers;
import dev.weft.cuda.exec.DeviceTimeline;
import dev.weft.cuda.exec.GatherRun;
import dev.weft.cuda.exec.HostPeers;
import dev.weft.cuda.exec.LaneCounters;
import dev.weft.cuda.exec.Launches;
import dev.weft.cuda.exec.Peers;
import dev.weft.cuda.exec.StagedCopies;
import dev.weft.cuda.exec.StagedPeers;
import dev.weft.cuda.kernel.CublasProduct;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.GatedProduct;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.TileSchedule;
import dev.weft.cuda.kernel.TileShape;
import dev.weft.exec.host.HostLanes;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.exec.Description;
import dev.weft.op.exec.Description.Feature;
import dev.weft.plan.GatherSteps;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.LongStream;

/**
 * Makes operators of one description: kernels, memory, copies and products of a plan. Used by the
 * thread that prepares the operator.
 *
 * @param fabric null if the peers' rows are in host memory
 * @param staged whether rows travel through the ranks' host memory
 * @param productType of the products, before an epilogue
 * @param wrapper puts what tests hold products back with around each of them
 * @param hook what tests hold copies back with
 */
record CudaAllGatherMatmulFactory(
        Transport fabric,
        Gpu gpu,
        int rank,
        CudaEngine engine,
        boolean staged,
        long deadlineNs,
        List<DeviceOperands.Side> operands,
        DType productType,
        UnaryOperator<DeviceProduct> wrapper,
        CopyStreams.Hook hook) {

    /** An operator with memory of its own, but for its operands. Collective. */
    CudaAllGatherMatmul operator(
            CudaPlanning planning, PlanWriter algorithm, DeviceOperands shared) {
        Description wanted = planning.wanted();
        List<RankPlan> all = planning.plans(algorithm);
        RankPlan agreed = all.get(rank);
        Shards shards = wanted.shards();
        boolean gatherFirst = agreed.pacing().gatherFirst();
        List<GatedKernel> kernels = kernels(wanted, !gatherFirst && !agreed.lanes().isEmpty());
        TileShape shape = kernels.isEmpty() ? null : kernels.getFirst().shape();
        RankPlan plan =
                shape == null
                        ? agreed
                        : planning.refined(agreed, wanted.columns().getFirst(), shape);
        DeviceLayout layout =
                new DeviceLayout(shards, wanted.aType(), wanted.k(), place(wanted, plan));
        boolean few = CudaPlanning.isOneRowOfTiles(plan, shape);
        // Few rows from host memory come in as few copies as can be.
        boolean together = few && fabric == null;
        long n = wanted.columns().stream().mapToLong(Long::longValue).sum();
        List<StepPlan> steps = GatherSteps.of(all, n);
        CopyList list = CopyList.of(steps, rank, plan.chunks(), plan.pacing().arrivalCut());
        Deque<AutoCloseable> made = new ArrayDeque<>();
        try (GpuStream stream = GpuStream.create()) {
            LaneCounters counters = counters(wanted, plan, list);
            int words = list.flags() + (counters == null ? 0 : counters.words());
            // A tensor copy of rows that are beyond A takes longer than one of rows that are there.
            long tileRows = few ? shape.rows() : 0;
            CudaBuffers buffers = new CudaBuffers(layout, rank, words, tileRows, stream);
            made.push(buffers);
            HostLanes host = staged ? hostLanes(wanted, plan, steps) : null;
            Peers peers = peers(wanted, host, buffers, shared, list);
            made.push(peers);
            List<List<DeviceMatrix>> places =
                    few
                            ? List.of(
                                    List.of(buffers.room(0, tileRows)),
                                    List.of(buffers.room(1, tileRows)))
                            : List.of(
                                    sources(plan, list, layout, buffers, peers, 0),
                                    sources(plan, list, layout, buffers, peers, 1));
            Launches launches =
                    list.sharesBuffers() ? new Launches(list, (DevicePeers) peers) : null;
            if (launches != null) {
                made.push(launches);
            }
            Copies copies =
                    copies(
                            wanted, plan, steps, peers, host, layout, list, launches, counters,
                            together);
            made.push(copies);
            List<DeviceProduct> products = new ArrayList<>();
            List<DeviceProduct> ready = new ArrayList<>();
            Products making =
                    (i, ranges, awaited) ->
                            product(
                                    kernels.isEmpty() ? null : kernels.get(i),
                                    few
                                            ? List.of(RowRange.whole(ranges, shards.totalRows()))
                                            : ranges,
                                    awaited,
                                    places,
                                    shared,
                                    i,
                                    buffers,
                                    copies);
            boolean arrives = !list.lanes().isEmpty() && !gatherFirst && launches == null;
            for (int i = 0; i < operands.size(); i++) {
                List<RowRange> ranges = launches == null ? list.ranges() : present(shards);
                products.add(making.of(i, ranges, counters));
                made.push(products.getLast());
                if (arrives) {
                    ready.add(making.of(i, present(shards), null));
                    made.push(ready.getLast());
                } else {
                    ready.add(products.getLast());
                }
            }
            for (CopyList.Launch launch : list.launches()) {
                List<DeviceProduct> ofLaunch = new ArrayList<>();
                for (int i = 0; i < operands.size(); i++) {
                    ofLaunch.add(making.of(i, launch.ranges(), null));
                }
                launches.add(ofLaunch);
            }
            Runnable heartbeat = fabric == null ? () -> {} : fabric::worked;
            CallEvents events =
                    new CallEvents(
                            rank,
                            list.origins(),
                            list.due(),
                            peers::worldRank,
                            buffers,
                            counters,
                            heartbeat,
                            fabric == null ? () -> {} : fabric::checkPeers,
                            deadlineNs,
                            work(wanted));
            made.push(events);
            List<List<DeviceMatrix>> results = results(wanted, shared, peers);
            GatedKernel kernel = kernels.isEmpty() ? null : kernels.getFirst();
            DeviceTimeline timeline = new DeviceTimeline(rank, list.owners(shards), kernel);
            made.push(timeline);
            if (arrives && !products.isEmpty() && !staged) {
                timeline.watch(products.getFirst(), list.arrivingFlags());
            }
            if (fabric != null) {
                fabric.barrier();
            }
            GatherRun run =
                    new GatherRun(
                            form(wanted, plan, results != null),
                            new GatherRun.Parts(
                                    list, engine, buffers, shared, copies, products, ready,
                                    launches, timeline),
                            peers);
            return new CudaAllGatherMatmul(
                    gpu, fabric, all, plan, steps, engine, buffers, peers, events, run, results);
        } catch (RuntimeException | Error e) {
            CudaAllGatherMatmulBuilder.closeAll(made, e);
            throw e;
        }
    }

    private static GatherRun.Form form(Description wanted, RankPlan plan, boolean sharesResults) {
        boolean inPlace = plan.storage() == RankPlan.Storage.IN_PLACE;
        return new GatherRun.Form(
                inPlace,
                plan.pacing().gatherFirst(),
                plan.storage() == RankPlan.Storage.GATHERED || inPlace && plan.ranks() == 1,
                sharesResults,
                wanted.aType().bytes());
    }

    /** By B; none for cuBLAS. Collective. */
    private List<GatedKernel> kernels(Description wanted, boolean waitForCopies) {
        List<GatedKernel> kernels = new ArrayList<>();
        if (engine != CudaEngine.GATED) {
            return kernels;
        }
        int share = share(waitForCopies);
        for (DeviceOperands.Side operand : operands) {
            kernels.add(
                    wanted.scaling() != null
                            ? GatedKernel.ofScaled(
                                    gpu,
                                    operand.dtype(),
                                    productType,
                                    wanted.shards(),
                                    wanted.computeWorkers(),
                                    share)
                            : GatedKernel.load(
                                    gpu,
                                    wanted.aType(),
                                    productType,
                                    operand.transposed(),
                                    wanted.shards(),
                                    wanted.computeWorkers(),
                                    share));
        }
        return kernels;
    }

    private static ArrivalPlace place(Description wanted, RankPlan plan) {
        if (plan.storage() == RankPlan.Storage.PING_PONG) {
            return ArrivalPlace.PING_PONG;
        }
        return wanted.wants(Feature.SIDE_BY_SIDE) ? ArrivalPlace.COLUMNS : ArrivalPlace.ROWS;
    }

    /** Null if no counters are wanted; otherwise collective. */
    private LaneCounters counters(Description wanted, RankPlan plan, CopyList list) {
        if (!wanted.wants(Feature.SUMMARIES)) {
            return null;
        }
        int lanes = plan.lanes().size();
        return LaneCounters.of(list, plan.ranks(), fabric == null ? lanes : mostOf(lanes));
    }

    /** Multiply-adds of a call, twice. */
    private static double work(Description wanted) {
        long n = wanted.columns().stream().mapToLong(Long::longValue).sum();
        return 2.0 * wanted.shards().totalRows() * wanted.k() * n;
    }

    private int share(boolean waitsForCopies) {
        if (fabric == null) {
            return 0;
        }
        int sharers = sharers(fabric, gpu);
        return waitsForCopies && sharers > 1 ? sharers : 0;
    }

    /**
     * How many ranks share this GPU's multiprocessors at the same time. Grids that wait for copies
     * must fit side by side and leave some free: within one GPU the driver copies by a kernel.
     * Collective.
     */
    static int sharers(Transport fabric, Gpu gpu) {
        long[] gpus = fabric.exchange(gpu.identity());
        return (int) Arrays.stream(gpus).filter(id -> id == gpu.identity()).count();
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
     * @param counters null if rows wait only for flags
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
            return wrapper.apply(
                    new CublasProduct(ranges, places, b, transposed, c, copies::awaitArrival));
        }
        TileSchedule schedule =
                TileSchedule.of(
                        ranges,
                        c.cols(),
                        kernel.shape(),
                        counters == null ? Map.of() : counters.arriving());
        long longestWaitNs = staged ? StagedPeers.longestWaitNs(deadlineNs) : deadlineNs;
        GatedProduct.Scales scales = shared.scales(index);
        GatedProduct.Gates gates = buffers.gates(longestWaitNs);
        GatedProduct.Operands multiplied =
                new GatedProduct.Operands(places, b, transposed || scales != null, c);
        return wrapper.apply(
                scales == null
                        ? new GatedProduct(kernel, schedule, multiplied, gates)
                        : new GatedProduct(kernel, schedule, multiplied, gates, scales));
    }

    /** Collective. */
    private HostLanes hostLanes(Description wanted, RankPlan plan, List<StepPlan> steps) {
        RowGather gather = plan.pacing().anyGather() ? fabric.rowGather() : null;
        return new HostLanes(fabric, steps, plan.chunks(), wanted.aType(), gather);
    }

    /**
     * @param host null if rows do not go through it
     */
    private Peers peers(
            Description wanted,
            HostLanes host,
            CudaBuffers buffers,
            DeviceOperands shared,
            CopyList list) {
        long[] own = {buffers.address(0), buffers.address(1)};
        DType aType = wanted.aType();
        if (host != null) {
            return new StagedPeers(fabric, host.region(), host.buffersAt(), own, buffers.flags());
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
                mostOf(list.words()),
                shown.build().toArray());
    }

    /**
     * The products that all ranks may read, by number and rank; null if there are none. Collective.
     */
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
            RankPlan plan,
            List<StepPlan> steps,
            Peers peers,
            HostLanes host,
            DeviceLayout layout,
            CopyList list,
            Launches launches,
            LaneCounters counters,
            boolean together) {
        boolean awaited = engine == CudaEngine.CUBLAS;
        if (peers instanceof StagedPeers through) {
            long productNs = CallEvents.productNs(work(wanted));
            return new StagedCopies(
                    gpu, through, host, steps, list, plan.chunks(), layout, awaited, productNs);
        }
        return new CopyStreams(
                peers, layout, list, launches, counters, awaited, together, deadlineNs, hook);
    }

    /** The largest of all ranks' numbers: what ranks show each other must be laid out alike. */
    private int mostOf(int number) {
        return (int) Arrays.stream(fabric.exchange(number)).max().orElse(number);
    }

    /** By rank: the matrix that the product reads that rank's rows from. */
    private List<DeviceMatrix> sources(
            RankPlan plan,
            CopyList list,
            DeviceLayout layout,
            CudaBuffers buffers,
            Peers peers,
            int parity) {
        List<DeviceMatrix> sources = new ArrayList<>();
        boolean inPlace = plan.storage() == RankPlan.Storage.IN_PLACE;
        int[] slots = list.slots(plan.ranks());
        for (int r = 0; r < plan.ranks(); r++) {
            sources.add(
                    inPlace
                            ? layout.shard(r, r, peers.buffer(r, parity))
                            : buffers.arrived(r, slots[r], parity));
        }
        return sources;
    }
}
