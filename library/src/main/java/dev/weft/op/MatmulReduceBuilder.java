package dev.weft.op;

import dev.weft.exec.host.HostExecutor;
import dev.weft.exec.host.PreparedEpilogue;
import dev.weft.exec.host.Product;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Agreement;
import dev.weft.fabric.transport.Region;
import dev.weft.ffi.LargePages;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.PackedB;
import dev.weft.op.exec.Description;
import dev.weft.plan.Chunks;
import dev.weft.plan.Plan;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Reduction;
import dev.weft.plan.Reduction.Order;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.plan.group.Experts;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.search.AutoChoice;
import dev.weft.search.Candidate;
import dev.weft.search.Device;
import dev.weft.search.PlanSearch;
import dev.weft.search.Problem;
import dev.weft.search.Sums;
import dev.weft.sim.Machine;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.IntStream;

/**
 * Describes a {@link MatmulReduceScatter} or a {@link MatmulAllReduce}. All ranks describe the same
 * operator; each gives its own rows of B. Used by one thread.
 *
 * @param <O> the operator
 */
public final class MatmulReduceBuilder<O extends Operator<Matrix>>
        extends ReduceBuilder<Matrix, MatmulReduceBuilder<O>> {

    /**
     * Rows of a block that is passed on: small blocks start sooner, large ones are multiplied
     * faster.
     */
    private static final long[] BLOCK_ROWS = {32, 64, 128};

    private final Function<HostOperator.Parts, O> maker;
    private final List<Given> given = new ArrayList<>();
    private final Map<Key, List<StepPlan>> written = new HashMap<>();

    private record Key(ReductionWriter algorithm, ReductionRequest request) {}

    /** A matrix, or weights; neither if A itself is summed. */
    private record Given(Matrix matrix, boolean transposed, Weights weights) {}

    MatmulReduceBuilder(Fabric fabric, boolean all, Function<HostOperator.Parts, O> maker) {
        super(Objects.requireNonNull(fabric, "fabric"), fabric.rank(), all);
        this.maker = maker;
    }

    @Override
    protected MatmulReduceBuilder<O> self() {
        return this;
    }

    /** This rank's rows of a right-hand side, [its K, N], or [N, its K] if {@code transposed}. */
    @Override
    public MatmulReduceBuilder<O> b(Matrix b, boolean transposed) {
        checkAccess(b);
        given.add(new Given(b, transposed, null));
        return side(b.describe(), b.dtype(), b.rows(), b.cols(), transposed);
    }

    /** No product: what each rank passes, [M, {@code cols}], is summed as it is, in rank order. */
    MatmulReduceBuilder<O> sumsOnly(Shards rowsOfRanks, long cols, DType type) {
        long[] all = new long[fabric.size()];
        Arrays.fill(all, positive("columns", cols));
        a(rowsOfRanks, Shards.of(all), type);
        algorithm(fabric.hosts().count() == 1 ? Reduction.DIRECT : Reduction.HIERARCHICAL);
        given.add(new Given(null, false, null));
        engine(Gemms.identity());
        return side("nothing", type, cols, cols, false);
    }

    /** This rank's rows of a right-hand side, which other operators may use as well. */
    public MatmulReduceBuilder<O> b(Weights packed) {
        given.add(new Given(null, false, packed));
        return given(packed);
    }

    @Override
    public MatmulReduceBuilder<O> engine(String name) {
        if (!Gemms.NAMES.contains(name)) {
            throw Gemms.unknown(name);
        }
        return super.engine(name);
    }

    /**
     * Agrees with the other ranks, packs B, reserves memory and starts the workers. Collective. The
     * matrices given as B may be freed afterwards.
     */
    @Override
    public O prepare() {
        try {
            return prepareAgreed();
        } catch (RuntimeException | Error e) {
            fabric.fail(e);
            throw e;
        } finally {
            written.clear();
        }
    }

    /** Like {@link #prepare}, for {@link GroupedMatmulReduceScatter#prepare}. */
    O prepareGrouped(Experts experts) {
        if (rows == null) {
            throw new IllegalArgumentException("an operator needs a(...)");
        }
        try {
            if (!kParts.equals(experts.ofRanks())) {
                throw new IllegalArgumentException(
                        "parts of K of %s for experts %s: expected the same"
                                .formatted(kParts, experts.ofRanks()));
            }
            if (wantedOrder() == Order.BY_RANK_BF16) {
                throw new IllegalArgumentException(
                        "order by-rank-bf16 with experts: expected whole or by-rank");
            }
            ofExperts(experts, fabric, rows, true);
            return prepareAgreed();
        } catch (RuntimeException | Error e) {
            fabric.fail(e);
            throw e;
        } finally {
            written.clear();
        }
    }

    private O prepareAgreed() {
        check();
        PreparedEpilogue finish = new PreparedEpilogue(epilogueSteps(), resultRows());
        if (algorithm == Reduction.DIRECT && fabric.hosts().count() > 1) {
            throw new IllegalArgumentException(
                    "algorithm direct on %d hosts: expected ranks that share memory"
                            .formatted(fabric.hosts().count()));
        }
        Order wanted = wantedOrder();
        agree(wanted);
        Gemm gemm = agreedEngine(wanted);
        int workers = computeWorkers() > 0 ? computeWorkers() : fabric.cores().cores();
        Arena arena = Arena.ofShared();
        List<Region> regions = new ArrayList<>();
        O operator;
        Common common;
        try {
            List<Candidate> candidates = candidates(tried(wanted), gemm, workers);
            boolean shared = candidates.stream().anyMatch(each -> readsPeersB(steps(each)));
            if (ofExperts() != null
                    && (shared || candidates.stream().anyMatch(each -> isIntoC(steps(each))))) {
                throw new IllegalArgumentException(
                        "algorithm %s with experts: it multiplies by Bs of other ranks or straight into C; expected chain, ring, mesh-push or sequential"
                                .formatted(algorithm.label()));
            }
            PackedB[][] packed = packed(gemm, shared, arena, regions);
            List<Product> results = results(gemm, packed[fabric.rank()], arena);
            OperatorResources resources = new OperatorResources(arena, List.copyOf(regions));
            common = new Common(gemm, packed, results, finish, workers);
            if (candidates.size() == 1) {
                operator = operator(candidates.getFirst(), common);
                ((HostOperator) operator).adopt(resources, List.of());
            } else {
                AutoChoice.Choice<O> choice = choose(candidates, common, wanted);
                operator =
                        choice.prepared() == null
                                ? operator(choice.chosen(), common)
                                : choice.prepared();
                ((HostOperator) operator).adopt(resources, choice.candidates());
            }
        } catch (RuntimeException | Error e) {
            new OperatorResources(arena, regions).close();
            throw e;
        }
        return withFewerRows(operator, common);
    }

    private AutoChoice.Choice<O> choose(List<Candidate> candidates, Common common, Order wanted) {
        Gemm gemm = common.gemm();
        Problem problem = problem(wanted, common.workers());
        String settings =
                "%s %s %s %s".formatted(gemm.name(), fabric.cores(), epilogue(), experts());
        return new AutoChoice(fabric, problem, settings)
                .choose(
                        () -> prices(problem, candidates, gemm),
                        trial(
                                candidate -> operator(candidate, common),
                                a -> a.data().asSlice(0, a.elementBytes()).fill(ORDINARY)));
    }

    /**
     * The engine that all ranks use. One that sums several k at a time gives the bits of the whole
     * product only if K is cut between those groups.
     */
    private Gemm agreedEngine(Order wanted) {
        String name = engine() == null ? "auto" : engine();
        boolean packed = !weights().isEmpty();
        boolean free = gemm() == null && name.equals("auto") && !packed;
        Gemm own =
                packed
                        ? Weights.engine(weights(), sides().size(), fabric, engine(), aType())
                        : gemm() == null ? Gemms.byName(name, aType(), otherType()) : gemm();
        if (wanted == Order.WHOLE && ofExperts() == null && !fits(own.sumQuantum())) {
            if (!free) {
                throw new IllegalArgumentException(
                        "engine %s sums %d k at a time, K is cut into %s: expected multiples, order by-rank, or engine portable"
                                .formatted(own.name(), own.sumQuantum(), kParts));
            }
            own = Gemms.portable();
        }
        return AllGatherMatmulBuilder.agreedEngine(fabric, own, free);
    }

    /** By rank and right-hand side; includes those of the host's other ranks if {@code shared}. */
    private PackedB[][] packed(Gemm gemm, boolean shared, Arena arena, List<Region> regions) {
        PackedB[][] packed = new PackedB[fabric.size()][0];
        long[] bytes = new long[given.size()];
        for (int i = 0; i < bytes.length; i++) {
            MatmulBuilder.Side side = sides().get(i);
            bytes[i] =
                    given.get(i).weights() == null
                            ? gemm.packedBytes(side.k(), side.n(), side.dtype())
                            : 0;
        }
        Region region = null;
        if (shared) {
            new Agreement(fabric).on("the engine", gemm.name().hashCode()).settle();
            region = fabric.allocate(Arrays.stream(bytes).map(MatmulReduceBuilder::toPage).sum());
            regions.add(region);
        }
        for (int r = 0; r < packed.length; r++) {
            boolean own = r == fabric.rank();
            if (!own && !(shared && fabric.hosts().shareMemory(r, fabric.rank()))) {
                continue;
            }
            packed[r] = new PackedB[given.size()];
            long at = 0;
            for (int i = 0; i < given.size(); i++) {
                long k = own ? sides().get(i).k() : kParts.rows(r);
                if (given.get(i).weights() != null) {
                    packed[r][i] = given.get(i).weights().of(r, k);
                    continue;
                }
                long n = sides().get(i).n();
                DType type = sides().get(i).dtype();
                long size = gemm.packedBytes(k, n, type);
                packed[r][i] =
                        gemm.packed(
                                k,
                                n,
                                type,
                                shared
                                        ? region.part(r).asSlice(at, size)
                                        : LargePages.allocate(size, arena));
                at += toPage(size);
                if (own && given.get(i).matrix() != null) {
                    packed[r][i].fill(given.get(i).matrix(), given.get(i).transposed(), 0, 1);
                }
            }
        }
        if (shared) {
            // Releases every rank's packed B to all others.
            fabric.barrier();
        }
        return packed;
    }

    /** This rank's packed Bs: each rank packs its own, even if peers read them. */
    private List<SharedB.Packed> sides(PackedB[] packed) {
        return IntStream.range(0, packed.length)
                .mapToObj(
                        i ->
                                given.get(i).weights() != null
                                        ? given.get(i).weights().packed()
                                        : new SharedB.Packed(
                                                packed[i],
                                                null,
                                                false,
                                                sides().get(i).dtype(),
                                                given.get(i).transposed()))
                .toList();
    }

    private static long toPage(long bytes) {
        return Math.ceilDiv(bytes, 4096) * 4096;
    }

    private long resultRows() {
        return all ? rows.totalRows() : rows.rows(fabric.rank());
    }

    private List<Product> results(Gemm gemm, PackedB[] packed, Arena arena) {
        boolean joins = epilogue().joins();
        List<Product> results = new ArrayList<>();
        long count = resultRows();
        PackedB[] ofResults =
                ofExperts() == null
                        ? packed
                        : packed.length > 0
                                ? new PackedB[] {packed[0]}
                                : new PackedB[] {nothing(gemm, arena)};
        for (int i = 0; i < (joins ? 1 : ofResults.length); i++) {
            Matrix c = result(count, ofResults[i].n(), arena);
            PackedB second = joins ? ofResults[i + 1] : null;
            results.add(new Product(ofResults[i], second, new Matrix[] {c, c}, null));
        }
        return results;
    }

    private List<ReductionWriter> tried(Order wanted) {
        if (algorithm != Reduction.AUTO) {
            return List.of(algorithm);
        }
        boolean whole = wanted == Order.WHOLE;
        if (ofExperts() != null && whole) {
            return List.of(Reduction.CHAIN);
        }
        if (fabric.size() == 1) {
            return List.of(whole ? Reduction.DIRECT : Reduction.SEQUENTIAL);
        }
        return List.copyOf(Device.ofCpus(fabric.hosts()).sums(wanted));
    }

    /** Adds the same algorithm's plans of fewer rows; a caller's own need not have any. */
    private O withFewerRows(O operator, Common common) {
        if (!(operator.plan().algorithm() instanceof Reduction reduction)) {
            return operator;
        }
        try {
            Agreement agreement = new Agreement(fabric);
            int quantum = (int) agreement.ofFirst(common.gemm().rowQuantum());
            long most = agreement.ofFirst(common.gemm().blockRows());
            int takers = (int) agreement.ofFirst(common.workers());
            List<HostExecutor.Work> works = new ArrayList<>();
            Chunks chunks = operator.plan().chunks();
            while (HostOperator.hasFewerRows(chunks)
                    || sharesRows(reduction, chunks.shards(), takers, quantum)) {
                Shards shards = Description.fewerRows(chunks.shards());
                Cut cut =
                        chunkRows() > 0 || splitsPerRank() > 0
                                ? new Cut(chunkRows(), splitsPerRank(), 0)
                                : cut(shards, reduction, takers, quantum, most);
                chunks = cut.sums(shards, allColumns());
                works.add(work(request(reduction, chunks), reduction, common));
            }
            ((HostOperator) operator).addPlans(works);
            return operator;
        } catch (RuntimeException | Error e) {
            operator.close();
            throw e;
        }
    }

    /** Whether a rank's workers share the rows of a block, and finish them whole. */
    private boolean sharesRows(
            ReductionWriter writer, Shards shards, int workers, long rowQuantum) {
        return writer == Reduction.DIRECT
                && epilogueSteps().takesWholeRows()
                && shards.ranks() == 1
                && workers > 1
                && Cut.givesRowsToEach(leastRows(shards), workers, rowQuantum);
    }

    /** The least that a call has for which there are no plans of fewer rows. */
    private static long leastRows(Shards shards) {
        return Description.fewerRows(shards).maxRows();
    }

    private Cut cut(Shards shards, ReductionWriter writer, int takers, int quantum, long most) {
        boolean direct = writer == Reduction.DIRECT;
        // A block whose rows are shared goes to all workers; otherwise each gets blocks of its own.
        boolean whole =
                epilogueSteps().takesWholeRows()
                        && (shards.ranks() > 1
                                || Cut.givesRowsToEach(shards.maxRows() / 2, takers, quantum));
        int sharing = sharesRows(writer, shards, takers, quantum) ? 1 : takers;
        if (ofExperts() != null) {
            return new Cut(BLOCK_ROWS[2] * ofExperts().timesFewer(), 0, 0);
        }
        return Cut.ofSums(shards, direct, whole, sharing, allColumns(), quantum, most);
    }

    private List<Candidate> candidates(List<ReductionWriter> tried, Gemm gemm, int workers) {
        Agreement agreement = new Agreement(fabric);
        int quantum = (int) agreement.ofFirst(gemm.rowQuantum());
        long most = agreement.ofFirst(gemm.blockRows());
        int takers = (int) agreement.ofFirst(workers);
        List<Candidate> candidates = new ArrayList<>();
        for (ReductionWriter each : tried) {
            if (chunkRows() > 0 || splitsPerRank() > 0) {
                candidates.add(candidate(each, new Cut(chunkRows(), splitsPerRank(), 0)));
            } else if (each != Reduction.DIRECT
                    && each.order() == Order.WHOLE
                    && algorithm == Reduction.AUTO) {
                // Products of groups need not wait for sums, so large blocks do no harm.
                long times = ofExperts() == null ? 1 : 2 * ofExperts().timesFewer();
                for (long count : BLOCK_ROWS) {
                    if (count == BLOCK_ROWS[0] || count * times <= rows.totalRows()) {
                        candidates.add(candidate(each, new Cut(count * times, 0, 0)));
                    }
                }
            } else {
                candidates.add(candidate(each, cut(rows, each, takers, quantum, most)));
            }
        }
        return candidates;
    }

    private Problem problem(Order wanted, int workers) {
        int agreed = (int) new Agreement(fabric).ofFirst(workers);
        return description()
                .problem(false, agreed, 0, fabric.hosts())
                .summed(new Sums(summedK(), all, wanted));
    }

    /** The cheapest first. Collective if there is a network; only the first rank gets prices. */
    private List<Candidate> prices(Problem problem, List<Candidate> candidates, Gemm gemm) {
        Machine machine = new AutoMachine(fabric).measure(gemm, aType());
        if (machine == null) {
            return List.of();
        }
        PlanSearch search = new PlanSearch(machine, problem);
        List<Candidate> priced = new ArrayList<>();
        for (Candidate candidate : candidates) {
            priced.add(search.priced(candidate));
            fabric.worked();
        }
        priced.sort(Comparator.comparingDouble(Candidate::predictedNs));
        return priced;
    }

    private Candidate candidate(PlanWriter writer, Cut cut) {
        Chunks chunks = cut.sums(rows, 1);
        int most = IntStream.range(0, rows.ranks()).map(chunks::count).max().orElseThrow();
        return Candidate.of(writer, cut, most, 1);
    }

    /** What the operators that auto tries share. */
    private record Common(
            Gemm gemm,
            PackedB[][] packed,
            List<Product> results,
            PreparedEpilogue epilogue,
            int workers) {}

    private long allColumns() {
        return ofExperts() != null
                ? ofExperts().side().n()
                : columns().stream().mapToLong(Long::longValue).sum();
    }

    private ReductionRequest request(Candidate candidate) {
        return request(
                (ReductionWriter) candidate.algorithm(), candidate.cut().sums(rows, allColumns()));
    }

    private ReductionRequest request(ReductionWriter writer, Chunks chunks) {
        Order wanted = order == null ? writer.order() : order;
        return new ReductionRequest(chunks, kParts, all, wanted, fabric.hosts());
    }

    private List<StepPlan> steps(Candidate candidate) {
        return steps((ReductionWriter) candidate.algorithm(), request(candidate));
    }

    /** Written once, though they are needed before B is packed and again for the operator. */
    private List<StepPlan> steps(ReductionWriter writer, ReductionRequest request) {
        return written.computeIfAbsent(
                new Key(writer, request), key -> key.algorithm().plans(key.request()));
    }

    /** Whether ranks multiply by what others have of B. */
    private static boolean readsPeersB(List<StepPlan> plans) {
        return plans.stream()
                .anyMatch(
                        plan ->
                                plan.multiplications()
                                        .anyMatch(step -> step.b().rank() != plan.rank()));
    }

    private static boolean isIntoC(List<StepPlan> plans) {
        return plans.stream()
                .flatMap(StepPlan::multiplications)
                .anyMatch(step -> step.into().buffer() == StepPlan.C);
    }

    private O operator(Candidate candidate, Common common) {
        ReductionRequest request = request(candidate);
        ReductionWriter writer = (ReductionWriter) candidate.algorithm();
        HostExecutor.Work work = work(request, writer, common);
        Arena arena = Arena.ofShared();
        try {
            return maker.apply(
                    new HostOperator.Parts(
                            new Plan(writer, request.chunks(), 1, work.plans()),
                            work,
                            sides(common.packed()[fabric.rank()]),
                            weights(),
                            -1,
                            false,
                            new OperatorResources(arena, List.of())));
        } catch (RuntimeException | Error e) {
            arena.close();
            throw e;
        }
    }

    private HostExecutor.Work work(
            ReductionRequest request, ReductionWriter writer, Common common) {
        List<StepPlan> steps = steps(writer, request);
        agree(writer, steps, request);
        Chunks chunks = request.chunks();
        int workers = common.workers();
        int blocks =
                Math.toIntExact(
                        steps.get(fabric.rank())
                                .multiplications()
                                .map(Step.Multiply::into)
                                .distinct()
                                .count());
        Shards shards = chunks.shards();
        boolean rows = sharesRows(writer, shards, workers, common.gemm().rowQuantum());
        int parts =
                rows
                        ? Cut.rowParts(blocks * leastRows(shards) / shards.maxRows(), workers)
                        : Cut.sumColumnParts(blocks, chunks.cols(), workers);
        HostExecutor.Grouped grouped =
                ofExperts() == null
                        ? null
                        : new HostExecutor.Grouped(
                                ofExperts().rows(),
                                true,
                                ofExperts().experts().capacity(fabric.rank(), shards.totalRows()),
                                ofExperts().side().k());
        return new HostExecutor.Work(
                fabric,
                steps,
                chunks,
                aType(),
                null,
                common.gemm(),
                common.packed(),
                common.results(),
                common.epilogue(),
                -1,
                -1,
                workers,
                parts,
                rows,
                grouped,
                null,
                null,
                null);
    }
}
