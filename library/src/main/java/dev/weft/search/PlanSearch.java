package dev.weft.search;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanChecker;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Reduction;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.AscendChunkRule;
import dev.weft.plan.cut.Cut;
import dev.weft.plan.step.StepPlan;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.Engine;
import dev.weft.sim.Machine;
import dev.weft.sim.Prediction;
import dev.weft.sim.Scenario;
import dev.weft.sim.Simulator;
import dev.weft.sim.TileEngine;
import dev.weft.sim.Wiring;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * The search for the fastest plan for a problem on a machine: which algorithms and cuts are
 * candidates, and how long the simulator says they take. Immutable, deterministic and thread-safe.
 * A price takes as long as its simulation.
 *
 * @param problem its ranks must fit on the machine; otherwise methods that need to place them on
 *     hosts throw {@link IllegalArgumentException}
 */
public record PlanSearch(Machine machine, Problem problem) {

    /** With more ranks than this, algorithms are not compared in every cut. */
    private static final int EVERY_CUT_RANKS = 64;

    /** Lanes beyond this many only wait for the same links. */
    private static final int MOST_DEFAULT_LANES = 8;

    /** The plans that sum are written for all ranks at once: more would need gigabytes. */
    private static final long MOST_SUM_TRANSFERS = 4_000_000;

    /** Transfer blocks of the Ascend example. */
    private static final int ASCEND_LANES = 24;

    /**
     * How many candidates a search may price.
     *
     * <p>Every algorithm that the machine can run is priced in every cut, except direct, which
     * moves no chunks: the first cut is enough. A cut into so many chunks that their transfers
     * exceed the budget is left out, unless it is the coarsest. Past 64 ranks all algorithms are
     * compared in the middle cut, and only the best of them and sequential in the others.
     */
    public enum Budget {
        /** For a search while others wait: three cuts that can be priced quickly. */
        QUICK(List.of(Chunks.MIN_CHUNKS_PER_SOURCE, 16, 4), 200_000),

        /** For a search that a user has asked for. */
        THOROUGH(List.of(4, 8, 16, 32, 64, 128), Long.MAX_VALUE);

        private final List<Integer> chunksPerSource;
        private final long transfers;

        Budget(List<Integer> chunksPerSource, long transfers) {
            this.chunksPerSource = chunksPerSource;
            this.transfers = transfers;
        }

        private List<Integer> chunksPerSource(long ranks, long mostTransfers) {
            int coarsest = Collections.min(chunksPerSource);
            long most = Math.min(transfers, mostTransfers);
            return chunksPerSource.stream()
                    .filter(count -> count == coarsest || count * ranks * ranks <= most)
                    .toList();
        }
    }

    /**
     * The search that prices {@link Algorithm#slicedRing}: its candidate has one chunk per slice if
     * they stay on the chip, and the machine's own chunks otherwise.
     *
     * @param n columns of B on each rank
     * @param onChip whether the ring's two buffers are in on-chip memory
     */
    public static PlanSearch ofSlicedRing(
            Machine machine,
            Shards shards,
            long k,
            long n,
            DType type,
            int programs,
            int lanes,
            boolean onChip) {
        Problem problem =
                new Problem(
                        shards,
                        k,
                        List.of(n),
                        type,
                        type,
                        false,
                        0,
                        lanes,
                        onChip ? new Cut(0, programs * lanes, 0) : Cut.AUTOMATIC,
                        null,
                        Map.of(),
                        null);
        // A ring has a kernel of its own, not the machine's.
        Machine ring = machine.withConsumption(Machine.Consumption.AS_PLANNED);
        return new PlanSearch(onChip ? ring.withArrivalsOnChip() : ring, problem);
    }

    /** All candidates within the budget, the cheapest first. */
    public List<Candidate> candidates(Budget budget) {
        return candidates(budget, () -> {});
    }

    /** All candidates, the cheapest first; calls the heartbeat for others that wait meanwhile. */
    public List<Candidate> candidates(Budget budget, Runnable heartbeat) {
        List<Cut> cuts = cuts(budget);
        List<PlanWriter> algorithms = algorithms();
        List<Candidate> priced = new ArrayList<>();
        if (problem.ranks() <= EVERY_CUT_RANKS || cuts.size() == 1) {
            addPriced(priced, algorithms, cuts, heartbeat);
        } else {
            Cut middle = cuts.get(cuts.size() / 2);
            addPriced(priced, algorithms, List.of(middle), heartbeat);
            Set<PlanWriter> kept = new LinkedHashSet<>();
            kept.add(cheapest(priced).algorithm());
            if (algorithms.contains(sequential())) {
                kept.add(sequential());
            }
            List<Cut> others = cuts.stream().filter(cut -> !cut.equals(middle)).toList();
            addPriced(priced, kept, others, heartbeat);
        }
        priced.sort(Comparator.comparingDouble(Candidate::predictedNs));
        return priced;
    }

    /** The cheapest way to gather first and then multiply, or to multiply and then sum. */
    public Candidate sequential(Budget budget) {
        List<Candidate> priced = new ArrayList<>();
        addPriced(priced, List.of(sequential()), cuts(budget), () -> {});
        return cheapest(priced);
    }

    /** The algorithm that does not overlap: for sums in any order, the one that adds up by rank. */
    public PlanWriter sequential() {
        return problem.sums() == null ? Algorithm.SEQUENTIAL : Reduction.SEQUENTIAL;
    }

    public boolean overlaps(Candidate candidate) {
        return !candidate.algorithm().equals(sequential());
    }

    /** Whether ranks multiply directly out of each other's memory. */
    public static boolean isDirect(PlanWriter writer) {
        return writer == Algorithm.DIRECT || writer == Reduction.DIRECT;
    }

    private static Candidate cheapest(List<Candidate> priced) {
        return Collections.min(priced, Comparator.comparingDouble(Candidate::predictedNs));
    }

    /** Leaves out what the machine cannot do, and what would be the same as another algorithm. */
    private List<PlanWriter> algorithms() {
        Device device = Device.general(hosts(), machine.node().direct());
        if (problem.sums() != null) {
            return List.copyOf(device.sums(problem.sums().order()));
        }
        return problem.isAlone() ? List.of(Algorithm.SEQUENTIAL) : List.copyOf(device.gathers());
    }

    /** Chunks are whole quanta, so several counts may give the same cut. */
    private List<Cut> cuts(Budget budget) {
        if (problem.cut().givesRows()) {
            return List.of(problem.cut());
        }
        long quantum = machine.engine().rowQuantum();
        Set<Cut> cuts = new LinkedHashSet<>();
        for (int count : budget.chunksPerSource(problem.ranks(), mostTransfers())) {
            long rows = Math.max(1, Math.ceilDiv(problem.shards().maxRows(), count));
            cuts.add(new Cut(Math.ceilDiv(rows, quantum) * quantum, 0, problem.cut().chunkCols()));
        }
        if (hasOwnKernel()) {
            cuts.add(kernelCut());
        }
        return List.copyOf(cuts);
    }

    private void addPriced(
            List<Candidate> priced,
            Iterable<PlanWriter> algorithms,
            List<Cut> cuts,
            Runnable heartbeat) {
        for (PlanWriter algorithm : algorithms) {
            for (Cut cut : isDirect(algorithm) ? List.of(directCut(cuts)) : cuts) {
                priced.add(priced(candidate(algorithm, cut)));
                heartbeat.run();
            }
        }
    }

    /** If nothing is moved in chunks, one cut is enough. */
    private Cut directCut(List<Cut> cuts) {
        return problem.sums() == null ? cuts.getFirst() : problem.cut();
    }

    /**
     * The problem as {@code algorithm} does it, with the problem's cut or else the machine's
     * default; not priced.
     *
     * @throws IllegalArgumentException if the machine cannot do that, with the reason
     */
    public Candidate candidate(PlanWriter algorithm) {
        return candidate(algorithm, problem.cut());
    }

    /** The problem as {@code algorithm} does it, with the caller's cut; not priced. */
    public Candidate candidate(PlanWriter algorithm, Cut cut) {
        Hosts hosts = hosts();
        if ((isDirect(algorithm) || algorithm == Reduction.HIERARCHICAL)
                && !machine.node().direct()) {
            throw new IllegalArgumentException(
                    "%s on %s: its ranks cannot multiply rows in a peer's memory"
                            .formatted(algorithm.label(), machine.name()));
        }
        if (isDirect(algorithm) && hosts.count() > 1) {
            throw new IllegalArgumentException(
                    "direct on %s hosts of %s: expected ranks of one host, at most %s"
                            .formatted(hosts.count(), machine.name(), machine.ranksPerNode()));
        }
        int lanes = problem.lanes() > 0 ? problem.lanes() : lanes(algorithm);
        Cut own = hasOwnKernel() && !cut.givesRows() ? kernelCut() : cut;
        Chunks chunks = chunks(algorithm, own, lanes);
        int most = IntStream.range(0, problem.ranks()).map(chunks::count).max().orElseThrow();
        return Candidate.of(algorithm, own, most, lanes);
    }

    /** Whether the kernel is the Ascend example's, which has its own chunks and lanes. */
    public boolean hasOwnKernel() {
        return machine.consumption() == Machine.Consumption.BY_SOURCE && problem.sums() == null;
    }

    private Cut kernelCut() {
        long rows = problem.shards().maxRows();
        return AscendChunkRule.of(rows, problem.k(), AscendChunkRule.BASE_M, AscendChunkRule.BASE_N)
                .cut();
    }

    private int lanes(PlanWriter writer) {
        if (!(writer instanceof Algorithm algorithm)) {
            return 1;
        }
        int perPeer = Math.clamp(problem.ranks() - 1, 1, MOST_DEFAULT_LANES);
        return switch (algorithm) {
            case RING, DIRECT, AUTO -> 1;
            case BIDIRECTIONAL_RING -> 2;
            case MESH_PUSH, MESH_PULL, SEQUENTIAL -> {
                if (hasOwnKernel()) {
                    yield ASCEND_LANES;
                }
                if (!coresMoveBytes()) {
                    yield perPeer;
                }
                // The compute workers are idle while a sequential call gathers.
                yield algorithm == Algorithm.SEQUENTIAL ? computeWorkers() : 1;
            }
        };
    }

    private boolean coresMoveBytes() {
        Wiring network = machine.network();
        return machine.node().coreGbps() > 0 || network != null && network.coreGbps() > 0;
    }

    /** How many of its lanes a candidate's plan has work for. */
    public int lanesUsed(Candidate candidate) {
        if (problem.sums() != null) {
            return steps(candidate).stream().mapToInt(StepPlan::lanes).max().orElse(0);
        }
        return candidate.algorithm() instanceof Algorithm algorithm
                ? algorithm.lanes(hosts(), candidate.lanes())
                : candidate.lanes();
    }

    /** Threads of a rank that multiply, or blocks of work for its engine's units. */
    public int computeWorkers() {
        return switch (machine.engine()) {
            case CoreEngine cores ->
                    problem.workers() > 0
                            ? problem.workers()
                            : Math.max(1, cores.cores() / hosts().size(0));
            case TileEngine tiles -> problem.workers() > 0 ? problem.workers() : tiles.units();
        };
    }

    /** How the ranks are placed on hosts. */
    public Hosts hosts() {
        return problem.hosts() == null ? machine.hosts(problem.ranks()) : problem.hosts();
    }

    /** A candidate's chunks. */
    public Chunks chunks(Candidate candidate) {
        return chunks(candidate.algorithm(), candidate.cut(), candidate.lanes());
    }

    private Chunks chunks(PlanWriter writer, Cut cut, int lanes) {
        Engine engine = machine.engine();
        Shards shards = problem.shards();
        if (problem.sums() != null) {
            Cut own =
                    cut.givesRows()
                            ? cut
                            : Cut.ofSums(
                                    shards,
                                    isDirect(writer),
                                    false,
                                    computeWorkers(),
                                    problem.allColumns(),
                                    engine.rowQuantum(),
                                    engine.blockRows());
            return own.sums(shards, problem.allColumns());
        }
        int takers = lanes;
        if (engine instanceof CoreEngine cores) {
            int workers = computeWorkers();
            int ofRows =
                    Cut.rowTakers(
                            shards,
                            workers,
                            problem.columns(),
                            cores.rowQuantum(),
                            cores.blockRows());
            takers = writer == Algorithm.SEQUENTIAL ? ofRows : Math.max(lanes, ofRows);
        }
        long quantum = engine.rowQuantum();
        Chunks chunks =
                cut.chunks(
                        shards,
                        problem.k(),
                        Math.toIntExact(quantum),
                        Cut.blockRows(shards, takers, quantum, engine.blockRows()));
        return ((GatherWriter) writer).cut(chunks);
    }

    /** Rows of a chunk of the largest shard. */
    public long chunkRows(Candidate candidate) {
        Chunks chunks = chunks(candidate);
        long most =
                IntStream.range(0, problem.ranks())
                        .mapToLong(chunks::chunkRows)
                        .max()
                        .orElseThrow();
        return Math.min(most, Math.max(1, problem.shards().maxRows()));
    }

    /** The candidate with the predicted time of a call. */
    public Candidate priced(Candidate candidate) {
        return candidate.priced(price(candidate, View.PIPELINED).ns());
    }

    /** The simulator's prediction for a view of a call. */
    public Prediction price(Candidate candidate, View view) {
        return Simulator.run(machine, scenario(candidate), view);
    }

    private long mostTransfers() {
        return problem.sums() == null ? Long.MAX_VALUE : MOST_SUM_TRANSFERS;
    }

    /** A call as the machine runs it, for the simulator. */
    public Scenario scenario(Candidate candidate) {
        Chunks chunks = chunks(candidate);
        long transfers = (long) chunks.total() * problem.ranks();
        if (transfers > mostTransfers()) {
            throw new IllegalArgumentException(
                    "%s transfers of sums between %s ranks: expected at most %s, of fewer ranks or larger chunks"
                            .formatted(transfers, problem.ranks(), mostTransfers()));
        }
        boolean gathers = problem.sums() == null;
        return new Scenario(
                gathers
                        ? MachinePlans.of(
                                machine,
                                (GatherWriter) candidate.algorithm(),
                                gatherRequest(candidate))
                        : steps(candidate),
                gathers ? gatherRequest(candidate).placement() : sumRequest(candidate).placement(),
                chunks.total(),
                candidate.algorithm().isSymmetric(),
                hosts(),
                problem.aType(),
                problem.outType(),
                problem.columns(),
                problem.keepGathered(),
                problem.workers(),
                problem.slowRanks());
    }

    /** In the wanted order, or in its own if it has another, as sequential does. */
    private ReductionRequest sumRequest(Candidate candidate) {
        Sums sums = problem.sums();
        ReductionWriter reduction = (ReductionWriter) candidate.algorithm();
        return new ReductionRequest(
                chunks(candidate),
                sums.kParts(),
                sums.all(),
                reduction.gives(sums.order()) ? sums.order() : reduction.order(),
                hosts());
    }

    private GatherRequest gatherRequest(Candidate candidate) {
        return new GatherRequest(
                chunks(candidate), Math.max(1, candidate.lanes()), hosts(), problem.allColumns());
    }

    /** What every rank does; proved if Weft has not written it. */
    public List<StepPlan> steps(Candidate candidate) {
        if (candidate.algorithm() instanceof ReductionWriter reduction) {
            ReductionRequest request = sumRequest(candidate);
            List<StepPlan> plans = reduction.plans(request);
            PlanChecker.checkGiven(reduction, plans, request);
            return plans;
        }
        GatherWriter writer = (GatherWriter) candidate.algorithm();
        GatherRequest request = gatherRequest(candidate);
        List<StepPlan> plans = writer.plans(request);
        PlanChecker.checkGiven(writer, plans, request);
        return plans;
    }
}
