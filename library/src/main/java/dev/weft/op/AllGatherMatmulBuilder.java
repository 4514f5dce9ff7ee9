package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Agreement;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.op.exec.ArrivalPlace;
import dev.weft.op.exec.OperatorMemory;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Cut;
import dev.weft.plan.Lane;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Planner;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.plan.Transfer;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Describes an {@link AllGatherMatmul}. All ranks describe the same one, except for B: with B
 * sharded by columns each rank gives its own columns. Used by one thread.
 */
public final class AllGatherMatmulBuilder {

    private final Transport fabric;
    private final RightHandSides sides = new RightHandSides();
    private Shards shards;
    private DType aType;
    private DType outType;
    private PlanWriter algorithm = Algorithm.AUTO;
    private Gemm engine;
    private long chunkRows;
    private int splitsPerRank;
    private long chunkCols;
    private int computeWorkers;
    private int commWorkers;
    private boolean pinned;
    private boolean keepGathered;
    private boolean pingPong;
    private boolean summaries;
    private boolean gatherColumns;
    private long gatherOnlyCols;
    private List<RankPlan> given;

    AllGatherMatmulBuilder(Fabric fabric) {
        this.fabric = Transport.of(Objects.requireNonNull(fabric, "fabric"));
    }

    /** How the rows of A lie on the ranks, and the type of A's elements. */
    public AllGatherMatmulBuilder a(Shards shards, DType dtype) {
        if (shards.ranks() != fabric.size()) {
            throw new IllegalArgumentException(
                    "shards for " + shards.ranks() + " ranks in a group of " + fabric.size());
        }
        this.shards = shards;
        this.aType = dtype;
        return this;
    }

    /** A right-hand side, [K, N]. Several share one gather; each gives a product. */
    public AllGatherMatmulBuilder b(Matrix b) {
        return b(b, false);
    }

    /** A right-hand side, [K, N], or [N, K] if {@code transposed}. */
    public AllGatherMatmulBuilder b(Matrix b, boolean transposed) {
        sides.add(b, transposed);
        return this;
    }

    /** The type of the products; by default what holds A and B without loss. */
    public AllGatherMatmulBuilder output(DType dtype) {
        this.outType = dtype;
        return this;
    }

    /**
     * How rows are gathered. {@link Algorithm#AUTO}, the default, prices the algorithms on the
     * model of this machine and tries the cheapest beside sequential, which takes {@link #prepare}
     * a second or so, once for each problem in a process. Plans of any other writer than {@link
     * Algorithm} are proved when the operator is prepared.
     */
    public AllGatherMatmulBuilder algorithm(PlanWriter algorithm) {
        this.algorithm = algorithm;
        this.given = null;
        return this;
    }

    /** The engine that multiplies; by default the best this JVM has. */
    public AllGatherMatmulBuilder engine(Gemm engine) {
        this.engine = engine;
        return this;
    }

    /** Chunks of this many rows, instead of Weft's own choice. */
    public AllGatherMatmulBuilder chunkRows(long rows) {
        this.chunkRows = positive("chunk rows", rows);
        return this;
    }

    /** Every shard in this many chunks, instead of Weft's own choice. */
    public AllGatherMatmulBuilder splitsPerRank(int splits) {
        this.splitsPerRank = (int) positive("splits per rank", splits);
        return this;
    }

    /** Chunks of this many columns; by default chunks are whole rows. */
    public AllGatherMatmulBuilder chunkCols(long cols) {
        this.chunkCols = positive("chunk columns", cols);
        return this;
    }

    /** Threads of this rank that multiply; by default its share of the cores. */
    public AllGatherMatmulBuilder computeWorkers(int workers) {
        this.computeWorkers = (int) positive("compute workers", workers);
        return this;
    }

    /**
     * Keeps each compute worker on a core of its own, rank after rank, where the world has as many
     * workers as the process has cores; otherwise the system places them. By default it always
     * does: a program that embeds Weft has other threads too.
     */
    public AllGatherMatmulBuilder pinWorkers() {
        this.pinned = true;
        return this;
    }

    /** Threads of this rank that move chunks; by default as few as the algorithm needs. */
    public AllGatherMatmulBuilder commWorkers(int workers) {
        this.commWorkers = (int) positive("communication workers", workers);
        return this;
    }

    /**
     * Row blocks wait for a counter of the lane that delivers them, and only then look at their
     * chunks' flags: one word to block on instead of several, and one signal more per chunk.
     */
    public AllGatherMatmulBuilder waitForSummary() {
        this.summaries = true;
        return this;
    }

    /** Leaves gathered A in {@link Result#gathered}. */
    public AllGatherMatmulBuilder keepGathered() {
        this.keepGathered = true;
        return this;
    }

    /**
     * A ring whose arriving shards live only in two buffers of one shard each, used in turn: no
     * gathered A is stored anywhere. Sets the algorithm; there is one lane, whatever {@link
     * #commWorkers} says.
     */
    public AllGatherMatmulBuilder pingPong() {
        this.pingPong = true;
        return algorithm(Planner.pingPongRing());
    }

    /**
     * The plans of all ranks, in rank order, in place of an algorithm, a cut and lanes: the
     * caller's own, which are proved when the operator is prepared, or those of another operator
     * ({@link AllGatherMatmul#plans}), which need no second search.
     */
    public AllGatherMatmulBuilder plans(List<RankPlan> plans) {
        this.given = plans;
        return this;
    }

    /** No product: A of {@code cols} columns is gathered, shard below shard or beside it. */
    AllGatherMatmulBuilder gatherOnly(long cols, boolean besideEachOther) {
        this.gatherOnlyCols = positive("columns", cols);
        this.gatherColumns = besideEachOther;
        return keepGathered();
    }

    private static long positive(String what, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(value + " " + what + ": expected at least one");
        }
        return value;
    }

    /**
     * Agrees with the other ranks, packs B, reserves memory and starts the workers. Collective. The
     * matrices given as B may be freed afterwards.
     */
    public AllGatherMatmul prepare() {
        try {
            return prepareAgreed();
        } catch (RuntimeException | Error e) {
            fabric.fail(e);
            throw e;
        }
    }

    private AllGatherMatmul prepareAgreed() {
        long k = checkOperands();
        Gemm gemm = engine == null ? Gemms.auto() : engine;
        agree(k);
        Arena arena = Arena.ofShared();
        List<Region> regions = new ArrayList<>();
        try {
            List<Product> products = products(gemm, arena, regions);
            Planning planning = planning(k, gemm);
            if (given != null || algorithm != Algorithm.AUTO) {
                List<RankPlan> plans =
                        given == null ? planning.plans(algorithm) : planning.agreed(given);
                return operator(plans, gemm, products, arena, regions, List.of());
            }
            AutoTrial trial =
                    new AutoTrial(
                            fabric, candidate -> tried(planning.plans(candidate), gemm, products));
            AutoChoice.Choice choice = new AutoChoice(fabric, planning).choose(gemm, trial);
            if (choice.operator() != null) {
                choice.operator()
                        .adopt(
                                new OperatorResources(arena, List.copyOf(regions)),
                                choice.candidates());
                return choice.operator();
            }
            return operator(
                    planning.plans(choice.chosen()),
                    gemm,
                    products,
                    arena,
                    regions,
                    choice.candidates());
        } catch (RuntimeException | Error e) {
            new OperatorResources(arena, regions).close();
            throw e;
        }
    }

    private Planning planning(long k, Gemm gemm) {
        return new Planning(
                fabric,
                gemm,
                shards,
                k,
                aType,
                sides.count() == 0 ? aType : outType(0),
                sides.columns(),
                new Cut(chunkRows, splitsPerRank, chunkCols),
                workers(),
                commWorkers,
                keepGathered,
                (summaries ? "summaries " : "") + (pinned ? "pinned" : ""));
    }

    /** An operator with memory of its own, but for the products. */
    private AllGatherMatmul tried(List<RankPlan> plans, Gemm gemm, List<Product> products) {
        Arena arena = Arena.ofShared();
        List<Region> regions = new ArrayList<>();
        try {
            return operator(plans, gemm, products, arena, regions, List.of());
        } catch (RuntimeException | Error e) {
            new OperatorResources(arena, regions).close();
            throw e;
        }
    }

    /** Takes over the arena and the regions, unless it fails. */
    private AllGatherMatmul operator(
            List<RankPlan> plans,
            Gemm gemm,
            List<Product> products,
            Arena arena,
            List<Region> regions,
            List<Candidate> candidates) {
        RankPlan plan = plans.get(fabric.rank());
        checkRuns(plan);
        OperatorMemory memory =
                new OperatorMemory(
                        fabric,
                        plan.chunks(),
                        aType,
                        landing(plan),
                        summaries ? plan.lanes().size() : 0);
        regions.add(memory.region());
        return new AllGatherMatmul(
                fabric,
                plans,
                plan,
                gemm,
                aType,
                memory,
                products,
                new Settings(
                        keepGathered,
                        summaries,
                        workers(),
                        pinned ? Pinning.of(fabric, workers()) : Pinning.none(),
                        rowGather(plan),
                        candidates),
                new OperatorResources(arena, List.copyOf(regions)));
    }

    /** What the checker cannot know: what is wanted besides the plan. */
    private void checkRuns(RankPlan plan) {
        if (keepGathered && plan.storage() == RankPlan.Storage.PING_PONG) {
            throw new IllegalArgumentException(
                    "plan %s with ping-pong buffers and gathered A kept: expected a plan that gathers A"
                            .formatted(plan.name()));
        }
        for (Lane lane : summaries ? plan.lanes() : List.<Lane>of()) {
            if (lane.transfers().stream().map(Transfer::initiator).distinct().count() > 1) {
                throw new IllegalArgumentException(
                        "lane %d of plan %s both puts and gets: with counters expected one of the two"
                                .formatted(lane.index(), plan.name()));
            }
        }
    }

    private ArrivalPlace landing(RankPlan plan) {
        if (plan.storage() == RankPlan.Storage.PING_PONG) {
            return ArrivalPlace.PING_PONG;
        }
        if (gatherColumns) {
            return ArrivalPlace.COLUMNS;
        }
        boolean arrives = plan.storage() == RankPlan.Storage.GATHERED && plan.ranks() > 1;
        boolean gathered = keepGathered || arrives;
        return gathered ? ArrivalPlace.ROWS : ArrivalPlace.NONE;
    }

    /** The fabric's own all-gather, where the plan leaves the gather to it; else null. */
    private RowGather rowGather(RankPlan plan) {
        boolean any = plan.pacing().anyGather() && landing(plan) == ArrivalPlace.ROWS;
        return any ? fabric.rowGather() : null;
    }

    private long checkOperands() {
        if (shards == null || sides.count() == 0 && gatherOnlyCols == 0) {
            throw new IllegalArgumentException("an operator needs a(...) and at least one b(...)");
        }
        if (pingPong && (keepGathered || algorithm instanceof Algorithm)) {
            throw new IllegalArgumentException(
                    "ping-pong buffers with "
                            + (keepGathered ? "gathered A kept" : algorithm.label())
                            + ": expected a ring that keeps none");
        }
        long k = sides.count() == 0 ? gatherOnlyCols : sides.innerSize();
        if (given != null) {
            checkGiven(k);
        }
        return k;
    }

    private void checkGiven(long k) {
        if (given.size() != shards.ranks()) {
            throw new IllegalArgumentException(
                    "plans of %d ranks for shards of %d".formatted(given.size(), shards.ranks()));
        }
        RankPlan own = given.get(fabric.rank());
        boolean keepsNone = own.storage() == RankPlan.Storage.PING_PONG && keepGathered;
        if (!own.chunks().shards().equals(shards) || own.chunks().cols() != k || keepsNone) {
            throw new IllegalArgumentException(
                    "a plan with %s and %s: expected shards of %s rows x %d columns%s"
                            .formatted(
                                    own.storage(),
                                    own.chunks(),
                                    shards,
                                    k,
                                    keepsNone ? " and a place for gathered A" : ""));
        }
    }

    private void agree(long k) {
        Agreement agreement = new Agreement(fabric);
        agreement.on("K", k);
        agreement.on("M", shards.totalRows());
        for (int r = 0; r < shards.ranks(); r++) {
            agreement.on("the rows of rank " + fabric.worldRank(r), shards.rows(r));
        }
        agreement.on("A's dtype (0 fp32, 1 fp16, 2 bf16)", aType.ordinal());
        agreement.on("the algorithm's number", Agreement.number(algorithm));
        agreement.on("chunk rows", chunkRows);
        agreement.on("splits per rank", splitsPerRank);
        agreement.on("chunk columns", chunkCols);
        agreement.on("communication workers", commWorkers);
        agreement.on("keeping gathered A", keepGathered ? 1 : 0);
        agreement.on("ping-pong buffers", pingPong ? 1 : 0);
        agreement.on("gathering side by side", gatherColumns ? 1 : 0);
        agreement.on("waiting for summaries", summaries ? 1 : 0);
        agreement.on("being given plans", given == null ? 0 : 1);
        agreement.settle();
    }

    private int workers() {
        if (computeWorkers > 0) {
            return computeWorkers;
        }
        return fabric.cores().cores();
    }

    private List<Product> products(Gemm gemm, Arena arena, List<Region> regions) {
        SharedB packer = new SharedB(fabric, gemm);
        List<Product> products = new ArrayList<>();
        for (int i = 0; i < sides.count(); i++) {
            SharedB.Packed packed = packer.pack(sides.matrix(i), sides.isTransposed(i), arena);
            if (packed.region() != null) {
                regions.add(packed.region());
            }
            long n = packed.b().n();
            Matrix c = Matrix.allocate(arena, outType(i), shards.totalRows(), n);
            products.add(new Product(packed.b(), c));
        }
        return List.copyOf(products);
    }

    private DType outType(int index) {
        return outType == null ? sides.productType(index, aType) : outType;
    }
}
