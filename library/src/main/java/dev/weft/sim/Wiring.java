package dev.weft.sim;

import java.util.List;

/**
 * How ends (the ranks of a node, or the nodes of a network) are connected.
 *
 * @param torus ends along each dimension, only for {@link Topology#TORUS}; otherwise empty
 * @param latencyUs the latency of one link
 * @param gbps the rate of one link, or of the bus, in one direction, in 10^9 bytes a second
 * @param laneGbps how much of it one transfer can use; 0 for all
 * @param rampBytes extra bytes that each transfer seems to have: messages of this size reach half
 *     the rate
 * @param duplex whether both directions have the full rate at once
 * @param portPerRank between nodes: whether each rank of a node has its own link
 * @param coreGbps how fast one core moves the bytes, if cores do; 0 if hardware does
 * @param direct whether an engine can multiply rows in place in a peer's memory
 */
public record Wiring(
        Topology topology,
        List<Integer> torus,
        double latencyUs,
        double gbps,
        double laneGbps,
        double rampBytes,
        boolean duplex,
        boolean portPerRank,
        double coreGbps,
        boolean direct) {

    /** The shapes that links can have. */
    public enum Topology {
        /** A link between every two ends. */
        MESH,
        /** One port for each end; any two ports are connected at full rate. */
        SWITCH,
        /** A link from each end to the next; further ends are reached through those in between. */
        RING,
        /** Links along each dimension, with the ends of each row connected. */
        TORUS,
        /** One medium that all ends share: a host's memory or its bus. */
        BUS
    }

    public Wiring {
        torus = List.copyOf(torus);
        if (!(gbps > 0)
                || !(latencyUs >= 0)
                || !(laneGbps >= 0)
                || !(rampBytes >= 0)
                || !(coreGbps >= 0)) {
            throw new IllegalArgumentException(
                    "links of %s GB/s, a lane's %s, latency %s us, ramp %s bytes, a core's %s GB/s: expected a positive rate and nothing negative"
                            .formatted(gbps, laneGbps, latencyUs, rampBytes, coreGbps));
        }
        if ((topology == Topology.TORUS) == torus.isEmpty()
                || torus.stream().anyMatch(size -> size < 1)) {
            throw new IllegalArgumentException(
                    "%s with dimensions %s: expected positive ones for a torus alone"
                            .formatted(topology, torus));
        }
    }

    /** The places of a torus; a double, since a file may ask for more than an int can hold. */
    double places() {
        return torus.stream().mapToDouble(Integer::doubleValue).reduce(1, (a, b) -> a * b);
    }

    /** With a part of the rate; a single transfer, or core, keeps its own. */
    Wiring part(double part) {
        return new Wiring(
                topology,
                torus,
                latencyUs,
                gbps * part,
                laneGbps,
                rampBytes,
                duplex,
                portPerRank,
                coreGbps,
                direct);
    }

    Wiring faster(double factor) {
        return new Wiring(
                topology,
                torus,
                latencyUs,
                gbps * factor,
                laneGbps * factor,
                rampBytes,
                duplex,
                portPerRank,
                coreGbps * factor,
                direct);
    }
}
