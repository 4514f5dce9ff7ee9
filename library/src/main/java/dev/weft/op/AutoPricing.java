package dev.weft.op;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.search.MachinePlans;
import dev.weft.sim.Machine;
import dev.weft.sim.Part;
import dev.weft.sim.Scenario;
import dev.weft.sim.Simulator;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** Prices what {@link Algorithm#AUTO} may choose from, on the model of the machine it runs on. */
final class AutoPricing {

    /** Chunks per source: fine ones hide more, coarse ones cost less to signal. */
    private static final int[] CUTS = {Chunks.MIN_CHUNKS_PER_SOURCE, 16, 4};

    /** Beyond it a price would take longer than the call: only the coarsest cut is priced. */
    private static final long MANY_TRANSFERS = 200_000;

    private final Machine machine;
    private final AutoProblem problem;
    private final Runnable heartbeat;

    /**
     * @param heartbeat called after every price, as others wait for them
     */
    AutoPricing(Machine machine, AutoProblem problem, Runnable heartbeat) {
        this.machine = machine;
        this.problem = problem;
        this.heartbeat = heartbeat;
    }

    /** All candidates, the cheapest first. */
    List<Candidate> prices() {
        List<Candidate> priced = new ArrayList<>();
        for (Algorithm algorithm : algorithms(problem.hosts())) {
            for (int cut : cuts(algorithm)) {
                priced.add(Candidate.priced(algorithm, cut, priceNs(algorithm, cut)));
                heartbeat.run();
            }
        }
        priced.sort(Comparator.comparingDouble(Candidate::predictedNs));
        return priced;
    }

    private static List<Algorithm> algorithms(Hosts hosts) {
        List<Algorithm> algorithms = new ArrayList<>();
        if (hosts.count() == 1) {
            algorithms.add(Algorithm.DIRECT);
        }
        algorithms.addAll(
                List.of(
                        Algorithm.MESH_PUSH,
                        Algorithm.MESH_PULL,
                        Algorithm.RING,
                        Algorithm.BIDIRECTIONAL_RING,
                        Algorithm.SEQUENTIAL));
        return algorithms;
    }

    private int[] cuts(Algorithm algorithm) {
        if (problem.cutGiven()) {
            return new int[] {0};
        }
        int finest = CUTS[0];
        if (algorithm == Algorithm.DIRECT) {
            return new int[] {finest};
        }
        long transfers = (long) finest * problem.hosts().ranks() * problem.hosts().ranks();
        if (transfers > MANY_TRANSFERS) {
            return new int[] {CUTS[CUTS.length - 1]};
        }
        return algorithm == Algorithm.SEQUENTIAL ? new int[] {finest} : CUTS;
    }

    private double priceNs(Algorithm algorithm, int cut) {
        Chunks chunks = problem.chunks(algorithm, cut);
        Hosts hosts = problem.hosts();
        Scenario scenario =
                Scenario.of(
                        new MachinePlans(machine, algorithm),
                        chunks,
                        problem.lanes(algorithm),
                        hosts,
                        problem.aType(),
                        problem.outType(),
                        problem.columns(),
                        problem.keepGathered(),
                        problem.workers());
        return Simulator.run(machine, scenario, Part.WHOLE).ns();
    }
}
