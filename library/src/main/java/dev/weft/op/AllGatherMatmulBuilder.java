package dev.weft.op;

import dev.weft.exec.host.HostExecutor;
import dev.weft.exec.host.PreparedEpilogue;
import dev.weft.exec.host.Product;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Agreement;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.op.exec.Description;
import dev.weft.op.exec.Description.Feature;
import dev.weft.op.exec.EpilogueSteps;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.plan.group.Experts;
import dev.weft.plan.step.StepPlan;
import dev.weft.search.AutoChoice;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.search.Problem;
import dev.weft.sim.Machine;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.ScaledMatrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;

/** Describes an {@link AllGatherMatmul}. */
public final class AllGatherMatmulBuilder extends OperatorBuilder<Matrix, AllGatherMatmulBuilder> {

    /** For measurements: the number of parts that columns are cut into; 0 leaves it to Weft. */
    private static final int COLUMN_PARTS = Integer.getInteger("weft.column.parts", 0);

    /** A product of a group with fewer columns is not worth a thread of its own. */
    private static final long LEAST_COLS_OF_GROUP = 256;

    private final Transport fabric;
    private final List<RightHandSide> sides = new ArrayList<>();
    private BitSet[] wanted;
    private boolean pinned;
    private int columnParts = COLUMN_PARTS;

    /** A matrix, or weights. */
    private record RightHandSide(
            Matrix matrix, boolean transposed, boolean scaled, Weights weights) {}

    AllGatherMatmulBuilder(Fabric fabric) {
        super(Objects.requireNonNull(fabric, "fabric").size());
        this.fabric = Transport.of(fabric);
    }

    @Override
    protected AllGatherMatmulBuilder self() {
        return this;
    }

    @Override
    public AllGatherMatmulBuilder b(Matrix b, boolean transposed) {
        checkAccess(b);
        sides.add(new RightHandSide(b, transposed, false, null));
        return side(b.describe(), b.dtype(), b.rows(), b.cols(), transposed);
    }

    /**
     * A right-hand side with scales, [K, N], or [N, K] if {@code transposed}. When the operator is
     * prepared, each element is multiplied by its scale and rounded to fp32.
     */
    public AllGatherMatmulBuilder b(ScaledMatrix b, boolean transposed) {
        Matrix values = b.values();
        sides.add(new RightHandSide(b.dequantize(Arena.ofAuto()), transposed, true, null));
        return side(values.describe(), values.dtype(), values.rows(), values.cols(), transposed);
    }

    /** A right-hand side that other operators may use as well. */
    public AllGatherMatmulBuilder b(Weights packed) {
        sides.add(new RightHandSide(null, false, false, packed));
        return given(packed);
    }

    @Override
    public AllGatherMatmulBuilder engine(String name) {
        if (!Gemms.NAMES.contains(name)) {
            throw Gemms.unknown(name);
        }
        return super.engine(name);
    }

    /** Cuts the columns of every product into this many parts, which workers take one by one. */
    AllGatherMatmulBuilder columnParts(int parts) {
        this.columnParts = parts;
        return this;
    }

    /**
     * Pins each compute worker to its own core, rank after rank, if the world has exactly one
     * worker per core of the process; otherwise the system places them. By default nothing is
     * pinned: a program that embeds Weft has other threads too.
     */
    public AllGatherMatmulBuilder pinWorkers() {
        this.pinned = true;
        return this;
    }

    /**
     * Agrees with the other ranks, packs B, reserves memory and starts the workers. Collective. The
     * matrices given as B may be freed afterwards.
     */
    @Override
    public AllGatherMatmul prepare() {
        try {
            return prepareAgreed();
        } catch (RuntimeException | Error e) {
            fabric.fail(e);
            throw e;
        }
    }

    /** Like {@link #prepare}, for {@link GroupedAllGatherMatmul#prepare}. */
    GroupedAllGatherMatmul prepareGrouped(Experts experts) {
        if (shards() == null) {
            throw new IllegalArgumentException("an operator needs a(...)");
        }
        AllGather<Matrix> routes = null;
        try {
            ofExperts(experts, fabric, shards(), false);
            routes =
                    gatherOfFew(
                            fabric,
                            shards(),
                            GroupedAllGatherMatmul.COLS_OF_ROUTE * experts.perRow());
            return new GroupedAllGatherMatmul(prepareAgreed(), routes, ofExperts());
        } catch (RuntimeException | Error e) {
            fabric.fail(e);
            if (routes != null) {
                routes.close();
            }
            throw e;
        }
    }

    private AllGatherMatmul prepareAgreed() {
        Description wanted = description();
        EpilogueSteps steps = epilogueSteps();
        long resultRows =
                ofExperts() == null ? wanted.shards().totalRows() : ofExperts().rows().capacity();
        PreparedEpilogue epilogue = new PreparedEpilogue(steps, resultRows);
        agree(wanted, steps);
        Gemm engine = agreedEngine(wanted);
        Arena arena = Arena.ofShared();
        List<Region> regions = new ArrayList<>();
        AllGatherMatmul operator;
        Prepared prepared;
        try {
            List<SharedB.Packed> packed = packed(engine, arena, regions);
            List<Product> products = products(wanted, engine, packed, arena, regions);
            int workers =
                    wanted.computeWorkers() > 0 ? wanted.computeWorkers() : fabric.cores().cores();
            Planning planning = planning(engine, wanted, workers);
            prepared = new Prepared(wanted, engine, packed, products, epilogue, workers);
            operator =
                    wanted.algorithm() == Algorithm.AUTO
                            ? chosen(planning, prepared, arena, regions)
                            : operator(
                                    planning,
                                    prepared,
                                    planning.plan(wanted.gather()),
                                    arena,
                                    regions);
        } catch (RuntimeException | Error e) {
            new OperatorResources(arena, regions).close();
            throw e;
        }
        return withFewerRows(operator, prepared);
    }

    /** Workers share the groups of rows if there are any, and not the rows. */
    private Planning planning(Gemm engine, Description wanted, int workers) {
        return ofExperts() == null
                ? Planning.of(fabric, engine, wanted, workers, columnParts, 1)
                : Planning.of(fabric, engine, wanted, workers, workers, ofExperts().timesFewer());
    }

    /** What auto chooses. Takes ownership of the arena and the regions, unless it fails. */
    private AllGatherMatmul chosen(
            Planning planning, Prepared prepared, Arena arena, List<Region> regions) {
        AutoChoice.Choice<AllGatherMatmul> choice = choose(planning, prepared);
        AllGatherMatmul operator = choice.prepared();
        if (operator == null) {
            Plan plan = planning.plan(choice.chosen());
            operator = operator(planning, prepared, plan, arena, regions);
            operator.adopt(null, choice.candidates());
        } else {
            operator.adopt(new OperatorResources(arena, List.copyOf(regions)), choice.candidates());
        }
        return operator;
    }

    /** An engine that all ranks' machines can run, if the choice is left to Weft. Collective. */
    private Gemm agreedEngine(Description wanted) {
        boolean packed = !weights().isEmpty();
        String name = wanted.engine() == null ? "auto" : wanted.engine();
        DType aType = multiplied(wanted.aType());
        // One engine for all right-hand sides: it must support the type of each.
        DType bType = multiplied(otherType());
        Gemm own =
                packed
                        ? Weights.engine(
                                weights(), sides().size(), fabric, engine(), wanted.aType())
                        : gemm() == null ? Gemms.byName(name, aType, bType) : gemm();
        // Weights are of all ranks, and have agreed, unless a rank has no experts.
        return packed && ofExperts() == null
                ? own
                : agreedEngine(fabric, own, !packed && gemm() == null && name.equals("auto"));
    }

    /**
     * @param free whether another engine may be chosen
     */
    static Gemm agreedEngine(Fabric fabric, Gemm own, boolean free) {
        long bits = own.bits().ordinal();
        if (Arrays.stream(fabric.exchange(bits)).allMatch(other -> other == bits)) {
            return own;
        }
        Gemm common = free ? Gemms.portable() : own;
        new Agreement(fabric)
                .on(
                        "the engine's bits (0 the same on every machine, 1 those of AMX, 2 any)",
                        common.bits().ordinal())
                .settle();
        return common;
    }

    private AutoChoice.Choice<AllGatherMatmul> choose(Planning planning, Prepared prepared) {
        Gemm engine = prepared.engine();
        boolean summaries = prepared.wanted().wants(Feature.SUMMARIES);
        String settings =
                "%s %s %s %s %s %s"
                        .formatted(
                                engine.name(),
                                fabric.cores(),
                                summaries,
                                pinned,
                                epilogue(),
                                experts());
        return new AutoChoice(fabric, planning.problem(), settings)
                .choose(
                        () -> prices(planning.problem(), engine),
                        trial(
                                candidate -> tried(planning, prepared, planning.plan(candidate)),
                                shard -> shard.data().fill(ORDINARY)));
    }

    /** Collective if there is a network to measure; only the first rank gets prices. */
    private List<Candidate> prices(Problem problem, Gemm engine) {
        Machine machine = new AutoMachine(fabric).measure(engine, multiplied(problem.aType()));
        return machine == null
                ? List.of()
                : new PlanSearch(machine, problem)
                        .candidates(PlanSearch.Budget.QUICK, fabric::worked);
    }

    /** What all tried operators share. */
    private record Prepared(
            Description wanted,
            Gemm engine,
            List<SharedB.Packed> packed,
            List<Product> products,
            PreparedEpilogue epilogue,
            int workers) {}

    /** An operator that has its own memory, except for the products. */
    private AllGatherMatmul tried(Planning planning, Prepared prepared, Plan plan) {
        Arena arena = Arena.ofShared();
        List<Region> regions = new ArrayList<>();
        try {
            return operator(planning, prepared, plan, arena, regions);
        } catch (RuntimeException | Error e) {
            new OperatorResources(arena, regions).close();
            throw e;
        }
    }

    /**
     * Adds the same algorithm's plans of fewer rows. A caller's own chunks or algorithm need not
     * have any. Closes the operator if that fails.
     */
    private AllGatherMatmul withFewerRows(AllGatherMatmul operator, Prepared prepared) {
        Description wanted = prepared.wanted();
        if (wanted.chunks() != null
                || !(operator.plan().algorithm() instanceof Algorithm algorithm)) {
            return operator;
        }
        int lanes = operator.plan().lanes();
        try {
            List<HostExecutor.Work> works = new ArrayList<>();
            Plan plan = operator.plan();
            while (HostOperator.hasFewerRows(plan.chunks())) {
                Shards shards = Description.fewerRows(plan.chunks().shards());
                Planning planning =
                        planning(prepared.engine(), wanted.with(shards), prepared.workers());
                plan = planning.plan(algorithm, lanes);
                works.add(work(planning, prepared, plan));
            }
            operator.addPlans(works);
            return operator;
        } catch (RuntimeException | Error e) {
            operator.close();
            throw e;
        }
    }

    /** Takes ownership of the arena and the regions, unless it fails. */
    private AllGatherMatmul operator(
            Planning planning, Prepared prepared, Plan plan, Arena arena, List<Region> regions) {
        Description wanted = prepared.wanted();
        return new AllGatherMatmul(
                new HostOperator.Parts(
                        plan,
                        work(planning, prepared, plan),
                        prepared.packed(),
                        weights(),
                        wanted.wants(Feature.KEPT) ? GatherRequest.GATHERED : -1,
                        wanted.wants(Feature.SHARED),
                        new OperatorResources(arena, List.copyOf(regions))));
    }

    private HostExecutor.Work work(Planning planning, Prepared prepared, Plan plan) {
        StepPlan own = plan.steps().get(fabric.rank());
        Description wanted = planning.wanted();
        wanted.checkRuns(plan.name(), own, wanted.wants(Feature.KEPT));
        PackedB[][] bs = new PackedB[fabric.size()][0];
        bs[fabric.rank()] =
                prepared.packed().stream().map(SharedB.Packed::b).toArray(PackedB[]::new);
        int workers = prepared.workers();
        boolean below = wanted.wants(Feature.KEPT) && !wanted.wants(Feature.SIDE_BY_SIDE);
        return new HostExecutor.Work(
                fabric,
                plan.steps(),
                plan.chunks(),
                wanted.aType(),
                wanted.scaling(),
                prepared.engine(),
                bs,
                prepared.products(),
                prepared.epilogue(),
                planning.isInGathered(plan.algorithm()) ? GatherRequest.GATHERED : -1,
                below ? GatherRequest.GATHERED : -1,
                workers,
                columnParts(plan.chunks(), own, wanted, workers),
                false,
                grouped(),
                wanted(wanted),
                planning.leavesGather(plan) ? fabric.rowGather() : null,
                pinned ? Pinning.of(fabric, workers)::apply : null);
    }

    private HostExecutor.Grouped grouped() {
        return ofExperts() == null
                ? null
                : new HostExecutor.Grouped(ofExperts().rows(), false, 0, 0);
    }

    /** Gathered A has all rows if the caller gets it. */
    private BitSet[] wanted(Description description) {
        boolean experts = ofExperts() != null && !description.wants(Feature.KEPT);
        return experts ? ofExperts().wanted() : wanted;
    }

    /** Every row comes straight from its owner. */
    AllGatherMatmulBuilder fromOwners() {
        return algorithm(fromOwners(fabric));
    }

    private static Algorithm fromOwners(Fabric fabric) {
        return fabric.sharesMemory() ? Algorithm.MESH_PULL : Algorithm.MESH_PUSH;
    }

    /** Tells all ranks a few numbers of each. */
    static AllGather<Matrix> gatherOfFew(Fabric fabric, Shards shards, long cols) {
        return AllGather.rows(fabric, shards, cols, DType.FP32, fromOwners(fabric));
    }

    /**
     * Lets copies leave out rows.
     *
     * @param rows by rank: the rows that it needs, filled in by the caller before each call
     */
    AllGatherMatmulBuilder wanted(BitSet[] rows) {
        this.wanted = rows;
        return this;
    }

    private int columnParts(Chunks chunks, StepPlan own, Description wanted, int workers) {
        if (ofExperts() != null) {
            long n = ofExperts().side().n();
            boolean whole = epilogueSteps().takesWholeRows();
            int groups = Math.max(1, ofExperts().rows().groups());
            // Few more than the workers need, also if one group has nearly all rows.
            int most = Math.min(workers, Math.max(2, 4 * workers / groups));
            return groups * (whole ? 1 : Math.clamp(n / LEAST_COLS_OF_GROUP, 1, most));
        }
        int programs = own.programs();
        int ofProgram = Math.max(1, workers / programs);
        return columnParts > 0
                ? columnParts
                : Cut.columnParts(chunks, programs, ofProgram, wanted.columns());
    }

    private void agree(Description wanted, EpilogueSteps steps) {
        Agreement agreement = new Agreement(fabric);
        wanted.agree(agreement, fabric);
        steps.agree(agreement);
        if (ofExperts() == null) {
            agreement.on("which Bs are weights, a bit for each", whichAreWeights());
        }
        agreement.settle();
    }

    private List<SharedB.Packed> packed(Gemm engine, Arena arena, List<Region> regions) {
        SharedB packer = new SharedB(fabric, engine);
        List<SharedB.Packed> all = new ArrayList<>();
        for (RightHandSide side : sides) {
            if (side.weights() != null) {
                all.add(side.weights().packed());
                continue;
            }
            SharedB.Packed packed =
                    ofExperts() == null
                            ? packer.pack(side.matrix(), side.transposed(), arena)
                            : SharedB.own(engine, side.matrix(), side.transposed(), arena);
            if (packed.region() != null) {
                regions.add(packed.region());
            }
            fabric.worked();
            all.add(side.scaled() ? packed.ofScaled() : packed);
        }
        return List.copyOf(all);
    }

    private List<Product> products(
            Description wanted,
            Gemm engine,
            List<SharedB.Packed> packed,
            Arena arena,
            List<Region> regions) {
        List<PackedB> all = packed.stream().map(SharedB.Packed::b).toList();
        boolean joins = epilogue().joins();
        List<Product> products = new ArrayList<>();
        if (ofExperts() != null) {
            Matrix c = result(ofExperts().rows().capacity(), ofExperts().side().n(), arena);
            for (int i = 0; i < all.size(); i += ofExperts().each()) {
                PackedB second = joins ? all.get(i + 1) : null;
                products.add(new Product(all.get(i), second, new Matrix[] {c, c}, null));
            }
            if (all.isEmpty()) {
                products.add(new Product(nothing(engine, arena), null, new Matrix[] {c, c}, null));
            }
            return List.copyOf(products);
        }
        for (int i = 0; i < (joins ? 1 : all.size()); i++) {
            PackedB b = all.get(i);
            PackedB second = joins ? all.get(i + 1) : null;
            long m = wanted.shards().totalRows();
            if (wanted.wants(Feature.SHARED)) {
                products.add(shared(b, second, outType(), m, resultCols(b.n()), regions));
            } else {
                Matrix c = result(m, b.n(), arena);
                products.add(new Product(b, second, new Matrix[] {c, c}, null));
            }
        }
        return List.copyOf(products);
    }

    /** A product in memory that peers can read, in two halves. Collective. */
    private Product shared(
            PackedB b, PackedB second, DType type, long m, long n, List<Region> regions) {
        long[] cols = fabric.exchange(n);
        long[] types = fabric.exchange(type.ordinal());
        Region region = fabric.allocate(2 * Matrix.contiguousBytes(type, m, n));
        regions.add(region);
        Matrix[][] peers = new Matrix[HostExecutor.COPIES][fabric.size()];
        for (int r = 0; r < fabric.size(); r++) {
            if (fabric.hosts().shareMemory(r, fabric.rank())) {
                DType ofRank = DType.values()[Math.toIntExact(types[r])];
                long bytes = Matrix.contiguousBytes(ofRank, m, cols[r]);
                for (int half = 0; half < HostExecutor.COPIES; half++) {
                    MemorySegment data = region.part(r).asSlice(half * bytes, bytes);
                    peers[half][r] = new Matrix(data, ofRank, m, cols[r], cols[r]);
                }
            }
        }
        int own = fabric.rank();
        return new Product(b, second, new Matrix[] {peers[0][own], peers[1][own]}, peers);
    }
}
