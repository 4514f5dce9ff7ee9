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
import dev.weft.cuda.kernel.ProductByRows;
import dev.weft.cuda.kernel.RowPlaces;
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
 * Makes one operator that gathers: kernels, memory, copies and products of a plan. Or what such an
 * operator takes in calls of fewer rows, in its memory. Used once, by the thread that prepares the
 * operator. Collective.
 */
final class GatherAssembly {

    /**
     * How many times fewer rows the next plan is for. With a quarter, 1000 rows of 4096 x 4096 at
     * room for 2048 took 1.24 times as long as alone (H200): they came in too few pieces.
     */
    private static final long FEWER = 2;

    private final CudaGroup group;
    private final Description wanted;
    private final CudaEngine engine;
    private final boolean staged;
    private final DeviceOperands operands;
    private final Testing testing;

    /** By B: for all rows and, behind it, for calls of fewer; none if a library multiplies. */
    private final List<List<GatedKernel>> kernels;

    private final Plan plan;

    /** What this rank does. */
    private final StepPlan own;

    private final boolean gatherFirst;
    private final CopyList list;
    private DeviceLayout layout;

    /** Null if there is no gated kernel. */
    private final TileShape shape;

    /** Whether the rows of all shards are multiplied together. */
    private final boolean together;

    private CudaBuffers buffers;
    private Peers peers;
    private int flagsOfPlan;
    private int firstFlag;

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
        boolean onePlace = planning.hasOnePlace(plan);
        this.kernels =
                engine == CudaEngine.GATED
                        ? new GatherKernels(
                                        group, wanted, productType, onePlace, group.sharers(waits))
                                .load()
                        : List.of();
        GatedKernel first = firstKernel();
        this.shape = first == null ? null : first.shape();
        ArrivalCut cut =
                first == null
                        ? null
                        : planning.arrivalCut(plan, wanted.columns().getFirst(), first);
        this.together = planning.multipliesTogether(plan, first);
        this.layout = new DeviceLayout(wanted.shards(), wanted.aType(), wanted.k(), place());
        this.list = CopyList.of(plan.steps(), group.rank, plan.chunks(), cut);
    }

    /** An operator with memory of its own, but for its operands. */
    CudaAllGatherMatmul operator() {
        return CudaGroup.assemble(this::operator);
    }

    private CudaAllGatherMatmul operator(Deque<AutoCloseable> made) {
        reserve(made);
        GatherRun.Prepared prepared = prepared(made);
        CallEvents events =
                group.events(
                        list.origins(),
                        list.due(),
                        peers,
                        buffers,
                        call -> counters == null ? Map.of() : counters.reached(call),
                        work());
        made.push(events);
        group.barrier();
        return new CudaAllGatherMatmul(
                group,
                plan,
                engine,
                buffers,
                peers,
                events,
                new GatherRun(prepared, buffers, operands, peers),
                this,
                sharedResults());
    }

    /** For all rows of the first B; null if a library multiplies. */
    private GatedKernel firstKernel() {
        return kernels.isEmpty() ? null : kernels.getFirst().getFirst();
    }

    private int mostPlansOfFewerRows() {
        return Long.SIZE - Long.numberOfLeadingZeros(wanted.shards().maxRows());
    }

    /** Whether a plan of fewer rows would be the same, or there can be none. */
    private boolean isSmallest() {
        return shape == null
                || together
                || staged
                || counters != null
                || wanted.chunks() != null
                || wanted.shards().maxRows() <= 1
                || wanted.shards().totalRows() <= shape.rows();
    }

    /**
     * Adds what calls of fewer rows take, each half of the one before, to an operator that this has
     * made: kernels, tiles and copies that suit their rows.
     */
    void addFewerRows(GatherRun run, CudaPlanning planning, DType productType) {
        GatherAssembly larger = this;
        while (group.most(larger.isSmallest() ? 1 : 0) == 0) {
            CudaPlanning fewer =
                    planning.with(Description.fewerRows(larger.wanted.shards(), FEWER));
            GatherAssembly next =
                    new GatherAssembly(
                            group,
                            fewer,
                            (GatherWriter) plan.algorithm(),
                            operands,
                            productType,
                            testing);
            if (group.most(next.fitsInto(this) ? 0 : 1) > 0) {
                break;
            }
            next.layout = layout.with(next.wanted.shards());
            next.buffers = buffers;
            next.peers = peers;
            next.firstFlag = larger.firstFlag + flagsOfPlan;
            run.add(CudaGroup.assemble(next::prepared));
            larger = next;
        }
        // A rank that cannot go on must not leave the others with an operator.
        group.barrier();
    }

    /** Whether flags, words and lanes suffice. */
    private boolean fitsInto(GatherAssembly larger) {
        return list.flags() <= larger.flagsOfPlan
                && list.words() <= larger.list.words()
                && list.lanes().size() <= larger.list.lanes().size();
    }

    private GatherRun.Prepared prepared(Deque<AutoCloseable> made) {
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
        DeviceTimeline timeline =
                new DeviceTimeline(
                        group.rank, list.owners(wanted.shards(), isCut()), firstKernel());
        made.push(timeline);
        if (arrives && !products.isEmpty() && !staged) {
            timeline.watch(products.getFirst(), list.arrivingFlags());
        }
        GatherRun.Parts parts =
                new GatherRun.Parts(
                        list,
                        engine == CudaEngine.CUBLAS,
                        copies,
                        products,
                        ready,
                        launches,
                        timeline);
        return new GatherRun.Prepared(form(), parts, wanted.shards(), firstFlag);
    }

    /** Memory and peers. */
    private void reserve(Deque<AutoCloseable> made) {
        counters = wanted.wants(Feature.SUMMARIES) ? counters() : null;
        // Each plan of fewer rows has flags of its own: a late one of an earlier call would be
        // taken
        // for one of another chunk.
        flagsOfPlan = group.most(list.flags());
        int words =
                counters == null
                        ? flagsOfPlan * (1 + mostPlansOfFewerRows())
                        : list.flags() + counters.words();
        // A tensor copy of rows that are beyond A takes longer than one of rows that are there.
        try (GpuStream stream = GpuStream.create()) {
            buffers = new CudaBuffers(layout, group.rank, words, rowsOfTiles(), stream);
        }
        made.push(buffers);
        if (staged) {
            RowGather gather = CudaPlanning.leavesGather(plan) ? group.fabric.rowGather() : null;
            host = new HostLanes(group.fabric, plan.steps(), plan.chunks(), wanted.aType(), gather);
        }
        peers = peers();
        made.push(peers);
    }

    /** Whether rows that are multiplied together are cut into several rows of tiles. */
    private boolean isCut() {
        return together && wanted.shards().totalRows() > shape.rows();
    }

    /** Of whole tiles, if all rows are multiplied together; else 0. */
    private long rowsOfTiles() {
        long tiles = Math.ceilDiv(wanted.shards().totalRows(), shape == null ? 1 : shape.rows());
        return together ? tiles * shape.rows() : 0;
    }

    /** What copies between them, and what is read. */
    private void connect(Deque<AutoCloseable> made) {
        places =
                together
                        ? List.of(
                                List.of(buffers.room(0, rowsOfTiles())),
                                List.of(buffers.room(1, rowsOfTiles())))
                        : List.of(sources(0), sources(1));
        if (list.sharesBuffers()) {
            launches = new Launches(list, (DevicePeers) peers);
            made.push(launches);
        }
        copies = copies();
        made.push(copies);
    }

    private GatherRun.Form form() {
        boolean inPlace = plan.readsPeersRows();
        return new GatherRun.Form(
                inPlace,
                gatherFirst,
                !inPlace && !own.reusesBuffers(),
                wanted.wants(Feature.SHARED) && peers instanceof DevicePeers,
                wanted.aType().bytes());
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
        long allRows = wanted.shards().totalRows();
        if (kernels.isEmpty()) {
            return testing.products.apply(
                    new CublasProduct(
                            of,
                            places,
                            operands.b(index),
                            group.bs.get(index).transposed(),
                            operands.product(index),
                            copies::awaitArrival,
                            rowPlaces()));
        }
        List<GatedKernel> ofB = kernels.get(index);
        if (!together) {
            return testing.products.apply(gated(index, ofB.getFirst(), of, awaited));
        }
        List<ProductByRows.Choice> choices = new ArrayList<>();
        try {
            for (GatedKernel kernel : ofB) {
                long rows = choices.isEmpty() ? allRows : kernel.blockRows();
                List<RowRange> whole = List.of(RowRange.whole(of, rows));
                choices.add(new ProductByRows.Choice(rows, gated(index, kernel, whole, awaited)));
            }
        } catch (RuntimeException | Error e) {
            choices.forEach(choice -> choice.product().close());
            throw e;
        }
        return testing.products.apply(
                choices.size() == 1
                        ? choices.getFirst().product()
                        : new ProductByRows(choices, allRows));
    }

    private DeviceProduct gated(
            int index, GatedKernel kernel, List<RowRange> ranges, LaneCounters awaited) {
        DeviceMatrix c = operands.product(index);
        long deadlineNs = group.deadlineNs();
        GatedProduct.Scales scales = operands.scales(index);
        boolean transposed = group.bs.get(index).transposed() || scales != null;
        return new GatedProduct(
                kernel,
                TileSchedule.of(
                        ranges,
                        c.cols(),
                        kernel.shape(),
                        awaited == null ? Map.of() : awaited.arriving()),
                new GatedProduct.Operands(places, operands.b(index), transposed, c, rowPlaces()),
                buffers.gates(firstFlag, staged ? HostPeers.longestWaitNs(deadlineNs) : deadlineNs),
                scales);
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
        // Rows that are multiplied together come from host memory in as few copies as can be.
        boolean joins = together && group.fabric == null;
        return new CopyStreams(
                peers,
                layout,
                list,
                launches,
                counters,
                firstFlag,
                awaited,
                joins,
                group.deadlineNs(),
                testing.copies);
    }

    /** Whether rows of A have the numbers of rows of C wherever they are read. */
    private RowPlaces rowPlaces() {
        return layout.place() == Place.ROWS ? RowPlaces.OF_BOTH : RowPlaces.OF_TARGET;
    }

    private List<DeviceMatrix> sources(int parity) {
        boolean inPlace = plan.readsPeersRows();
        int[] slots = list.slots(wanted.shards().ranks());
        List<DeviceMatrix> sources = new ArrayList<>();
        for (int r = 0; r < wanted.shards().ranks(); r++) {
            long from = inPlace ? peers.buffer(r, parity) : buffers.address(parity);
            sources.add(
                    layout.place() == Place.ROWS
                            ? layout.gathered(from)
                            : buffers.arrived(r, slots[r], parity));
        }
        return sources;
    }
}
