package dev.weft.sim;

import dev.weft.plan.Hosts;

/**
 * Which ranks do the same at the same times, so that only one of them is simulated. If all shards
 * and hosts have the same size and no rank is slow, plans and wires look the same from rank r and
 * from rank {@code r + shift}: whatever r sends to s at some time, {@code r + shift} sends to
 * {@code s + shift}. So ranks 0 to {@code shift - 1} stand for all: what another rank does to r is
 * what one of them does to r's own image.
 *
 * @param shift equal to {@code ranks} if no two ranks are alike
 */
record SymmetricRanks(int ranks, int shift) {

    static SymmetricRanks none(int ranks) {
        return new SymmetricRanks(ranks, ranks);
    }

    static SymmetricRanks of(Machine machine, Scenario scenario) {
        int ranks = scenario.ranks();
        Hosts hosts = scenario.hosts();
        if (!scenario.symmetric()
                || !scenario.slowRanks().isEmpty()
                || scenario.placement().ranks().stream()
                                .map(rank -> rank.a().count())
                                .distinct()
                                .count()
                        > 1
                || hosts.sizes().stream().distinct().count() > 1) {
            return none(ranks);
        }
        boolean oneHost = hosts.count() == 1;
        int period =
                oneHost
                        ? period(machine.node(), ranks)
                        : Math.multiplyExact(
                                period(machine.network(), hosts.count()), hosts.size(0));
        return new SymmetricRanks(ranks, period);
    }

    /** By how many ends the wires can be rotated and still look the same. */
    private static int period(Wiring wiring, int ends) {
        return switch (wiring.topology()) {
            case SWITCH, BUS -> 1;
            case MESH, RING -> wiring.duplex() ? 1 : ends;
            case TORUS -> {
                boolean whole = wiring.places() == ends;
                yield wiring.duplex() && whole ? ends / wiring.torus().getLast() : ends;
            }
        };
    }

    /** Ranks to simulate. */
    int count() {
        return shift;
    }

    /** The simulated rank that stands for {@code rank}. */
    int standIn(int rank) {
        return rank % shift;
    }

    /** The rank that is to {@code viewer}'s stand-in what {@code rank} is to {@code viewer}. */
    int seen(int rank, int viewer) {
        return Math.floorMod(rank - (viewer - standIn(viewer)), ranks);
    }
}
