package dev.weft.cuda.op;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.GpuStream;
import dev.weft.cuda.exec.CallEvents;
import dev.weft.cuda.exec.Copies;
import dev.weft.cuda.exec.CopyList;
import dev.weft.cuda.exec.CopyList.LaneCounters;
import dev.weft.cuda.exec.CopyStreams;
import dev.weft.cuda.exec.CudaBuffers;
import dev.weft.cuda.exec.DeviceLayout;
import dev.weft.cuda.exec.DeviceLayout.Place;
import dev.weft.cuda.exec.DeviceOperands;
import dev.weft.cuda.exec.DevicePeers;
import dev.weft.cuda.exec.DeviceTimeline;
import dev.weft.cuda.exec.GatherRun;
import dev.weft.cuda.exec.HostPeers;
import dev.weft.cuda.exec.Launches;
import dev.weft.cuda.exec.Peers;
import dev.weft.cuda.exec.StagedCopies;
import dev.weft.cuda.kernel.CublasProduct;
import dev.weft.cuda.kernel.DeviceProduct;
import dev.weft.cuda.kernel.GatedKernel;
import dev.weft.cuda.kernel.GatedProduct;
import dev.weft.cuda.kernel.RowRange;
import dev.weft.cuda.kernel.TileSchedule;
import dev.weft.cuda.kernel.TileShape;
import dev.weft.exec.host.HostLanes;
import dev.weft.fabric.transport.RowGather;
import dev.weft.op.exec.Description;
import dev.weft.op.exec.Description.Feature;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.ArrivalCut;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.LongStream;

/**
 * Makes one operator that gathers: kernels, memory, copies and products of a plan. Used once, by
 * the thread that prepares the operator. Collective.
 */
final class GatherAssembly {

    private final CudaGroup group;
    private final Description wanted;
    private final CudaEngine engine;
    private final boolean staged;
    private final DeviceOperands operands;
    private final Testing testing;
    private final List<GatedKernel> kernels;
    private final Plan plan;

    /** What this rank does. */
    private final StepPlan own;

    private final boolean gatherFirst;
    private final CopyList list;
    private final DeviceLayout layout;

    /** Null if there is no gated kernel. */
    private final TileShape shape;

    /** Whether all rows are one row of tiles. */
    private final boolean oneRowOfTiles;

    private CudaBuffers buffers;
    private Peers peers;

    /** Null if there are no counters. */
    private LaneCounters counters;

    /** Null if rows do not go through host memory. */
    private HostLanes host;

    /** Null if every shard has its own place. */
    private Launches launches;

    private Copies copies;

    /** By parity and rank: the matrix that the product reads that rank's rows from. */
    private List<List<DeviceMatrix>> places;

    /**
     * What tests hold an operator back with.
     *
     * @param products put around each product
     */
    record Testing(UnaryOperator<DeviceProduct> products, CopyStreams.Hook copies) {}

    /**
     * @param productType of the products, before an epilogue
     */
    GatherAssembly(
            CudaGroup group,
            CudaPlanning planning,
            GatherWriter algorithm,
            DeviceOperands operands,
            DType productType,
            Testing testing) {
        this.group = group;
        this.wanted = planning.wanted();
        this.engine = planning.engine();
        this.staged = planning.staged();
        this.operands = operands;
        this.testing = testing;
        this.plan = planning.plan(algorithm);
        this.own = plan.steps().get(group.rank);
        this.gatherFirst = own.multipliesLast();
        boolean waits = !gatherFirst && own.movers() > 0;
        this.kernels = engine == CudaEngine.GATED ? kernels(productType, waits) : List.of();
        this.shape = kernels.isEmpty() ? null : kernels.getFirst().shape();
        ArrivalCut cut =
                shape == null
                        ? null
                        : planning.arrivalCut(plan, wanted.columns().getFirst(), shape);
        this.oneRowOfTiles = planning.isOneRowOfTiles(plan, shape);
        this.layout = new DeviceLayout(wanted.shards(), wanted.aType(), wanted.k(), place());
        this.list = CopyList.of(plan.steps(), group.rank, plan.chunks(), cut);
    }

    /** An operator with memory of its own, but for its operands. */
    CudaAllGatherMatmul operator() {
        return CudaGroup.assemble(this::operator);
    }

    private CudaAllGatherMatmul operator(Deque<AutoCloseable> made) {
        connect(made);
        List<DeviceProduct> products = new ArrayList<>();
        List<DeviceProduct> ready = new ArrayList<>();
        List<RowRange> present = present();
        boolean arrives = !list.lanes().isEmpty() && !gatherFirst && launches == null;
        for (int i = 0; i < group.bs.size(); i++) {
            products.add(product(i, launches == null ? list.ranges() : present, counters));
            made.push(products.getLast());
            if (arrives) {
                ready.add(product(i, present, null));
                made.push(ready.getLast());
            } else {
                ready.add(products.getLast());
            }
        }
        for (CopyList.Launch launch : list.launches()) {
            List<DeviceProduct> ofLaunch = new ArrayList<>();
            for (int i = 0; i < group.bs.size(); i++) {
                ofLaunch.add(product(i, launch.ranges(), null));
            }
            launches.add(ofLaunch);
        }
        CallEvents events =
                group.events(list.origins(), list.due(), peers, buffers, counters, work());
        made.push(events);
        List<List<DeviceMatrix>> shared = sharedResults();
        GatedKernel kernel = kernels.isEmpty() ? null : kernels.getFirst();
        DeviceTimeline timeline =
                new DeviceTimeline(group.rank, list.owners(wanted.shards()), kernel);
        made.push(timeline);
        if (arrives && !products.isEmpty() && !staged) {
            timeline.watch(products.getFirst(), list.arrivingFlags());
        }
        group.barrier();
        GatherRun.Parts parts =
                new GatherRun.Parts(
                        list,
                        engine == CudaEngine.CUBLAS,
                        buffers,
                        operands,
                        copies,
                        products,
                        ready,
                        launches,
                        timeline);
        return new CudaAllGatherMatmul(
                group,
                plan,
                engine,
                buffers,
                peers,
                events,
                new GatherRun(form(shared != null), parts, peers),
                shared);
    }

    /** Memory, peers, and what copies between them. */
    private void connect(Deque<AutoCloseable> made) {
        counters = wanted.wants(Feature.SUMMARIES) ? counters() : null;
        int words = list.flags() + (counters == null ? 0 : counters.words());
        // A tensor copy of rows that are beyond A takes longer than one of rows that are there.
        long tileRows = oneRowOfTiles ? shape.rows() : 0;
        try (GpuStream stream = GpuStream.create()) {
            buffers = new CudaBuffers(layout, group.rank, words, tileRows, stream);
        }
        made.push(buffers);
        if (staged) {
            RowGather gather = CudaPlanning.leavesGather(plan) ? group.fabric.rowGather() : null;
            host = new HostLanes(group.fabric, plan.steps(), plan.chunks(), wanted.aType(), gather);
        }
        peers = peers();
        made.push(peers);
        places =
                oneRowOfTiles
                        ? List.of(
                                List.of(buffers.room(0, tileRows)),
                                List.of(buffers.room(1, tileRows)))
                        : List.of(sources(0), sources(1));
        if (list.sharesBuffers()) {
            launches = new Launches(list, (DevicePeers) peers);
            made.push(launches);
        }
        copies = copies();
        made.push(copies);
    }

    private GatherRun.Form form(boolean sharesResults) {
        boolean inPlace = plan.readsPeersRows();
        return new GatherRun.Form(
                inPlace,
                gatherFirst,
                !inPlace && !own.reusesBuffers(),
                sharesResults,
                wanted.aType().bytes());
    }

    /** By B. */
    private List<GatedKernel> kernels(DType productType, boolean waitForCopies) {
        int share = group.sharers(waitForCopies);
        Shards shards = wanted.shards();
        int blocks = wanted.computeWorkers();
        List<GatedKernel> all = new ArrayList<>();
        for (DeviceOperands.B b : group.bs) {
            all.add(
                    wanted.scaling() != null
                            ? GatedKernel.ofScaled(
                                    group.gpu, b.dtype(), productType, shards, blocks, share)
                            : GatedKernel.load(
                                    group.gpu,
                                    wanted.aType(),
                                    productType,
                                    b.transposed(),
                                    shards,
                                    blocks,
                                    share));
        }
        return all;
    }

    private Place place() {
        if (own.reusesBuffers()) {
            return Place.PING_PONG;
        }
        return wanted.wants(Feature.SIDE_BY_SIDE) ? Place.COLUMNS : Place.ROWS;
    }

    private LaneCounters counters() {
        return LaneCounters.of(list, wanted.shards().ranks(), group.most(own.movers()));
    }

    private long columns() {
        return wanted.columns().stream().mapToLong(Long::longValue).sum();
    }

    /** Multiply-adds of a call, twice. */
    private double work() {
        return 2.0 * wanted.shards().totalRows() * wanted.k() * columns();
    }

    /** All rows in their natural order, waiting for nothing: the product alone. */
    private List<RowRange> present() {
        Shards shards = wanted.shards();
        List<RowRange> ranges = new ArrayList<>();
        for (int r = 0; r < shards.ranks(); r++) {
            long rows = shards.rows(r);
            ranges.add(new RowRange(r, 0, shards.firstRow(r), rows, List.of(), false));
        }
        return ranges;
    }

    /**
     * @param awaited the counters that rows wait for; null if they wait only for flags
     */
    private DeviceProduct product(int index, List<RowRange> of, LaneCounters awaited) {
        List<RowRange> ranges =
                oneRowOfTiles ? List.of(RowRange.whole(of, wanted.shards().totalRows())) : of;
        boolean transposed = group.bs.get(index).transposed();
        DeviceMatrix b = operands.b(index);
        DeviceMatrix c = operands.product(index);
        if (kernels.isEmpty()) {
            return testing.products.apply(
                    new CublasProduct(ranges, places, b, transposed, c, copies::awaitArrival));
        }
        GatedKernel kernel = kernels.get(index);
        long deadlineNs = group.deadlineNs();
        GatedProduct.Scales scales = operands.scales(index);
        return testing.products.apply(
                new GatedProduct(
                        kernel,
                        TileSchedule.of(
                                ranges,
                                c.cols(),
                                kernel.shape(),
                                awaited == null ? Map.of() : awaited.arriving()),
                        new GatedProduct.Operands(places, b, transposed || scales != null, c),
                        buffers.gates(staged ? HostPeers.longestWaitNs(deadlineNs) : deadlineNs),
                        scales));
    }

    private Peers peers() {
        long[] own = {buffers.address(0), buffers.address(1)};
        if (staged) {
            return new HostPeers(
                    group.fabric, host.region(), host.buffersAt(), own, buffers.flags());
        }
        if (group.fabric == null) {
            long rows = wanted.shards().totalRows();
            return new HostPeers(
                    group.rank, wanted.aType(), rows, wanted.k(), own, buffers.flags());
        }
        LongStream.Builder shown = LongStream.builder();
        shown.add(own[0]).add(own[1]).add(buffers.flags());
        for (int i = 0; wanted.wants(Feature.SHARED) && i < operands.count(); i++) {
            shown.add(operands.result(i).address());
        }
        return new DevicePeers(
                group.fabric,
                group.gpu,
                group.most(list.lanes().size()),
                group.most(list.words()),
                shown.build().toArray());
    }

    /** The products that all ranks may read, by number and rank; null if there are none. */
    private List<List<DeviceMatrix>> sharedResults() {
        if (!wanted.wants(Feature.SHARED) || !(peers instanceof DevicePeers linked)) {
            return null;
        }
        List<List<DeviceMatrix>> all = new ArrayList<>();
        for (int i = 0; i < operands.count(); i++) {
            long[] cols = group.fabric.exchange(operands.result(i).cols());
            long[] types = group.fabric.exchange(operands.result(i).dtype().ordinal());
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

    private Copies copies() {
        boolean awaited = engine == CudaEngine.CUBLAS;
        if (staged) {
            return new StagedCopies(
                    group.fabric,
                    peers,
                    host,
                    plan.steps(),
                    list,
                    plan.chunks(),
                    layout,
                    awaited,
                    CallEvents.productNs(work()));
        }
        // Rows of one row of tiles come from host memory in as few copies as can be.
        boolean joins = oneRowOfTiles && group.fabric == null;
        return new CopyStreams(
                peers,
                layout,
                list,
                launches,
                counters,
                awaited,
                joins,
                group.deadlineNs(),
                testing.copies);
    }

    private List<DeviceMatrix> sources(int parity) {
        boolean inPlace = plan.readsPeersRows();
        int[] slots = list.slots(wanted.shards().ranks());
        List<DeviceMatrix> sources = new ArrayList<>();
        for (int r = 0; r < wanted.shards().ranks(); r++) {
            sources.add(
                    inPlace
                            ? layout.shard(r, r, peers.buffer(r, parity))
                            : buffers.arrived(r, slots[r], parity));
        }
        return sources;
    }
}
