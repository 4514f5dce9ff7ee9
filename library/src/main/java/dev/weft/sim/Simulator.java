package dev.weft.sim;

import dev.weft.trace.View;

/**
 * Prices scenarios on machines: simulates the plans that executors run, by discrete events. Links,
 * buses and cores share their rate equally among their current users. Pure and thread-safe.
 */
public final class Simulator {

    /** A simulation of more copies would take minutes and gigabytes. */
    private static final long MAX_COPIES = 100_000_000;

    private Simulator() {}

    /**
     * Prices one view of a call. If ranks are alike, only one of each class is simulated, which
     * gives the same times. Ranks are not alike if shards or hosts are unequal or some rank is
     * slow.
     */
    public static Prediction run(Machine machine, Scenario scenario, View view) {
        return run(machine, scenario, view, null);
    }

    /** Simulates every rank, and reports to {@code sink} what each does (null for none). */
    public static Prediction runEveryRank(
            Machine machine, Scenario scenario, View view, SpanSink sink) {
        check(machine, scenario);
        return run(machine, scenario, view, SymmetricRanks.none(scenario.ranks()), sink);
    }

    /** Like {@link #run}, reporting the simulated ranks to {@code sink}. */
    public static Prediction run(Machine machine, Scenario scenario, View view, SpanSink sink) {
        check(machine, scenario);
        return run(machine, scenario, view, SymmetricRanks.of(machine, scenario), sink);
    }

    private static Prediction run(
            Machine machine, Scenario scenario, View view, SymmetricRanks like, SpanSink sink) {
        long copies = Math.multiplyExact(scenario.copiesPerRank(), like.count());
        if (copies > MAX_COPIES) {
            throw new IllegalArgumentException(
                    """
                    %s transfers to simulate, %s ranks one by one: expected at most \
                    %s; with equal shards and no slow rank one of each class would do"""
                            .formatted(copies, like.count(), MAX_COPIES));
        }
        return new Simulation(machine, scenario, view, like, sink).run();
    }

    private static void check(Machine machine, Scenario scenario) {
        if (!scenario.columns().isEmpty() && !machine.engine().knows(scenario.aType())) {
            throw new IllegalArgumentException(
                    machine.name() + " has no rate for A of type " + scenario.aType().label());
        }
        if (scenario.hosts().count() > 1 && machine.network() == null) {
            throw new IllegalArgumentException(
                    "hosts of %s ranks on %s, which has no network between nodes: expected one host"
                            .formatted(scenario.hosts(), machine.name()));
        }
        checkTorus(machine.node(), scenario.hosts().size(0), "ranks of a node");
        if (scenario.hosts().count() > 1) {
            checkTorus(machine.network(), scenario.hosts().count(), "nodes");
        }
    }

    private static void checkTorus(Wiring wiring, int ends, String what) {
        double places = wiring.places();
        if (wiring.topology() == Wiring.Topology.TORUS && places != ends) {
            throw new IllegalArgumentException(
                    "%s %s on a torus of %s: expected as many as it has places"
                            .formatted(ends, what, wiring.torus()));
        }
    }
}
