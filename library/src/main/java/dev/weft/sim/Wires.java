package dev.weft.sim;

import dev.weft.plan.Hosts;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** All links, buses and cores of a simulation; those on a transfer's path serve it at once. */
final class Wires {

    /** Types of station, to look them up, within hosts and between them. */
    private enum StationType {
        CORES,
        BUS,
        OUT,
        IN,
        LINK
    }

    private record Key(StationType type, boolean within, int owner, int other) {}

    private final Events events;
    private final Machine machine;
    private final Hosts hosts;
    private final SymmetricRanks like;
    private final Map<Integer, Double> slowRanks;

    /** How much of its rate the memory of a host reaches in a call. */
    private final double copyRate;

    private final Map<Key, Station> stations = new HashMap<>();

    Wires(Events events, Machine machine, Scenario scenario, SymmetricRanks like) {
        this.events = events;
        this.machine = machine;
        this.hosts = scenario.hosts();
        this.like = like;
        this.slowRanks = scenario.slowRanks();
        this.copyRate =
                machine.engine() instanceof CoreEngine cores ? cores.inCalls().copyRate() : 1;
    }

    /** The cores that {@code rank} shares with the ranks of its host. */
    Station cores(int rank) {
        CoreEngine engine = (CoreEngine) machine.engine();
        return ofHost(StationType.CORES, rank, engine.capacity());
    }

    private Station ofHost(StationType type, int rank, double capacity) {
        int first = hosts.first(hosts.hostOf(rank));
        // If the ranks of the only host are alike, each simulated one has its share of it.
        int alike = hosts.count() == 1 ? like.ranks() / like.count() : 1;
        return station(type, true, like.standIn(first), 0, capacity / alike);
    }

    double slowness(int rank) {
        return slowRanks.getOrDefault(rank, 1.0);
    }

    /** Finds the path of {@code bytes} from one rank to another, by a lane of {@code mover}. */
    void route(int from, int to, int mover, double bytes, Route route) {
        boolean within = hosts.shareMemory(from, to);
        Wiring wiring = within ? machine.node() : machine.network();
        double laneGbps =
                wiring.laneGbps() > 0 ? Math.min(wiring.laneGbps(), wiring.gbps()) : wiring.gbps();
        double capacity = wiring.gbps() / laneGbps;
        double rate = within ? copyRate : 1;
        route.begin((bytes + wiring.rampBytes()) / (laneGbps * rate));
        int hops = from == to ? 0 : addLinks(wiring, within, from, to, capacity, route);
        route.latencyNs = hops * wiring.latencyUs() * 1e3;
        if (wiring.coreGbps() > 0 && machine.engine() instanceof CoreEngine) {
            addCores(
                    wiring.coreGbps() * rate,
                    within ? mover : from,
                    within ? mover : to,
                    bytes,
                    route);
        }
    }

    /** Adds the links, ports or the bus between two ranks; returns the number of hops. */
    private int addLinks(
            Wiring wiring, boolean within, int from, int to, double capacity, Route route) {
        int fromEnd = within || wiring.portPerRank() ? from : hosts.first(hosts.hostOf(from));
        int toEnd = within || wiring.portPerRank() ? to : hosts.first(hosts.hostOf(to));
        switch (wiring.topology()) {
            case BUS -> {
                int alike = like.ranks() / like.count();
                route.add(
                        within
                                ? ofHost(StationType.BUS, from, capacity)
                                : station(StationType.BUS, false, 0, 0, capacity / alike));
            }
            case SWITCH -> {
                StationType in = wiring.duplex() ? StationType.IN : StationType.OUT;
                route.add(station(StationType.OUT, within, like.standIn(fromEnd), 0, capacity));
                route.add(station(in, within, like.standIn(toEnd), 0, capacity));
            }
            case MESH -> route.add(pair(within, fromEnd, toEnd, wiring.duplex(), capacity));
            case RING, TORUS -> {
                return walk(wiring, within, from, to, capacity, route);
            }
        }
        return 1;
    }

    /** Within a host one core copies; between hosts one core at either end moves the messages. */
    private void addCores(double coreGbps, int from, int to, double bytes, Route route) {
        double workNs = bytes / coreGbps;
        route.add(cores(from), workNs * slowness(from));
        if (from != to) {
            route.add(cores(to), workNs * slowness(to));
        }
    }

    private Station pair(boolean within, int from, int to, boolean duplex, double capacity) {
        boolean turned = !duplex && to < from;
        int owner = turned ? to : from;
        int other = turned ? from : to;
        int seen = like.seen(other, owner);
        return station(StationType.LINK, within, like.standIn(owner), seen, capacity);
    }

    /** Adds the links of the path, the shorter one along each dimension; returns their number. */
    private int walk(
            Wiring wiring, boolean within, int from, int to, double capacity, Route route) {
        int host = hosts.hostOf(from);
        int ends = within ? hosts.size(host) : hosts.count();
        int at = within ? from - hosts.first(host) : host;
        int goal = within ? to - hosts.first(host) : hosts.hostOf(to);
        boolean isRing = wiring.topology() == Wiring.Topology.RING;
        List<Integer> sizes = isRing ? List.of(ends) : wiring.torus();
        int hops = 0;
        int stride = 1;
        for (int size : sizes) {
            int here = at / stride % size;
            int there = goal / stride % size;
            int ahead = Math.floorMod(there - here, size);
            int step = 2 * ahead <= size ? 1 : -1;
            for (int left = Math.min(ahead, size - ahead); left > 0; left--) {
                int next = Math.floorMod(here + step, size);
                int nextAt = at + (next - here) * stride;
                int rail = !within && wiring.portPerRank() ? from - hosts.first(host) : 0;
                route.add(
                        pair(
                                within,
                                within ? hosts.first(host) + at : hosts.first(at) + rail,
                                within ? hosts.first(host) + nextAt : hosts.first(nextAt) + rail,
                                wiring.duplex(),
                                capacity));
                at = nextAt;
                here = next;
                hops++;
            }
            stride *= size;
        }
        return Math.max(1, hops);
    }

    private Station station(
            StationType type, boolean within, int owner, int other, double capacity) {
        return stations.computeIfAbsent(
                new Key(type, within, owner, other), key -> new Station(events, capacity));
    }

    /** The load of the busiest cores, or of the busiest link or bus. */
    double leastNs(boolean cores) {
        double most = 0;
        for (Map.Entry<Key, Station> entry : stations.entrySet()) {
            if ((entry.getKey().type() == StationType.CORES) == cores) {
                most = Math.max(most, entry.getValue().leastNs());
            }
        }
        return most;
    }
}
