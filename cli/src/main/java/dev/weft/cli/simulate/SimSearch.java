package dev.weft.cli.simulate;

import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.sim.Part;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * All candidates of a problem on a machine, cheapest first. Every algorithm that the machine can do
 * is priced in every cut. Past {@value #EVERY_CUT_RANKS} ranks algorithms are compared in one cut
 * first, and only the best and sequential in the others. Deterministic.
 */
public final class SimSearch {

    /** Chunks per source that are tried; cuts into the same chunks are tried once. */
    static final List<Integer> CHUNK_COUNTS = List.of(4, 8, 16, 32, 64, 128);

    static final int EVERY_CUT_RANKS = 64;

    private static final List<PlanWriter> ALGORITHMS =
            List.of(
                    Algorithm.DIRECT,
                    Algorithm.MESH_PUSH,
                    Algorithm.MESH_PULL,
                    Algorithm.BIDIRECTIONAL_RING,
                    Algorithm.RING,
                    Algorithm.SEQUENTIAL);

    private final SimProblem problem;
    private final List<SimCandidate.Priced> priced = new ArrayList<>();

    private SimSearch(SimProblem problem) {
        this.problem = problem;
    }

    /**
     * @param cut the only one to be tried, or {@link SimCut#AUTOMATIC} for all
     * @param lanes 0 for the machine's own number
     */
    public static SimSearch of(SimProblem problem, SimCut cut, int lanes) {
        SimSearch search = new SimSearch(problem);
        List<SimCut> cuts = cut.isGiven() ? List.of(cut) : cuts(problem);
        List<PlanWriter> algorithms = search.possible();
        if (problem.shards().ranks() <= EVERY_CUT_RANKS || cuts.size() == 1) {
            search.add(algorithms, cuts, lanes);
        } else {
            SimCut middle = cuts.get(cuts.size() / 2);
            search.add(algorithms, List.of(middle), lanes);
            Set<PlanWriter> kept = new LinkedHashSet<>();
            kept.add(search.cheapest().candidate().algorithm());
            kept.add(Algorithm.SEQUENTIAL);
            search.add(kept, cuts.stream().filter(other -> !other.equals(middle)).toList(), lanes);
        }
        search.priced.sort(Comparator.comparingDouble(SimCandidate.Priced::ns));
        return search;
    }

    /** The cheapest way to gather first and multiply after. */
    public static SimCandidate.Priced sequential(SimProblem problem, int lanes) {
        SimSearch search = new SimSearch(problem);
        search.add(List.of(Algorithm.SEQUENTIAL), cuts(problem), lanes);
        return search.cheapest();
    }

    /** Without what the machine cannot do, or what could not be told from another algorithm. */
    private List<PlanWriter> possible() {
        boolean alone = problem.shards().ranks() == 1 || problem.shards().totalRows() == 0;
        if (alone) {
            return List.of(Algorithm.SEQUENTIAL);
        }
        boolean direct = problem.machine().node().direct() && problem.hosts().count() == 1;
        return ALGORITHMS.stream()
                .filter(algorithm -> direct || algorithm != Algorithm.DIRECT)
                .toList();
    }

    /** Chunks are whole quanta, so that several counts may come to the same cut. */
    private static List<SimCut> cuts(SimProblem problem) {
        long quantum = problem.machine().engine().rowQuantum();
        Set<SimCut> cuts = new LinkedHashSet<>();
        for (int count : CHUNK_COUNTS) {
            long rows = Math.max(1, Math.ceilDiv(problem.shards().maxRows(), count));
            cuts.add(SimCut.byRows(Math.ceilDiv(rows, quantum) * quantum));
        }
        if (problem.hasOwnKernel()) {
            cuts.add(SimCut.AUTOMATIC);
        }
        return List.copyOf(cuts);
    }

    private void add(Iterable<PlanWriter> algorithms, List<SimCut> cuts, int lanes) {
        for (PlanWriter algorithm : algorithms) {
            // Nothing travels in direct: the cut makes no difference to it.
            for (SimCut cut : algorithm == Algorithm.DIRECT ? cuts.subList(0, 1) : cuts) {
                priced.add(problem.price(problem.candidate(algorithm, cut, lanes)));
            }
        }
    }

    /** Cheapest first; among equals, in the order of algorithms and cuts. */
    public List<SimCandidate.Priced> priced() {
        return priced;
    }

    public SimCandidate.Priced cheapest() {
        return cheapest(priced);
    }

    /** The cheapest of those that gather first and multiply after. */
    public SimCandidate.Priced sequential() {
        return cheapest(priced.stream().filter(one -> !one.candidate().overlaps()).toList());
    }

    /** The cheapest of those that overlap; sequential where there is nothing to overlap. */
    SimCandidate.Priced overlapped() {
        List<SimCandidate.Priced> overlapped =
                priced.stream().filter(one -> one.candidate().overlaps()).toList();
        return overlapped.isEmpty() ? sequential() : cheapest(overlapped);
    }

    /**
     * The least time without any overlap: sequential, or what another algorithm takes for its
     * gather alone and then its product alone. Links may carry another algorithm's gather better
     * than sequential's: that is no merit of overlap.
     */
    double unoverlappedNs() {
        double least = sequential().ns();
        for (SimCandidate.Priced one : priced) {
            if (one.candidate().algorithm() != Algorithm.DIRECT) {
                double gather = problem.price(one.candidate(), Part.GATHER).gatherNs();
                double product = problem.price(one.candidate(), Part.PRODUCT).ns();
                least = Math.min(least, gather + product);
            }
        }
        return least;
    }

    private static SimCandidate.Priced cheapest(List<SimCandidate.Priced> candidates) {
        return candidates.stream()
                .min(Comparator.comparingDouble(SimCandidate.Priced::ns))
                .orElseThrow();
    }

    /** The larger of product alone and transfers alone, over the whole call: 1 is perfect. */
    static double limitFraction(SimProblem problem, SimCandidate.Priced one) {
        double product = problem.price(one.candidate(), Part.PRODUCT).ns();
        double gather = problem.price(one.candidate(), Part.GATHER).ns();
        return Math.max(product, gather) / one.ns();
    }
}
