package dev.weft.sim;

import java.util.List;

/**
 * How ends (the ranks of a node, or the nodes of a network) are joined.
 *
 * @param torus ends along each dimension, for {@link Topology#TORUS} alone; otherwise empty
 * @param latencyUs of one link
 * @param gbps of one link, or of the bus, in one direction, in 10^9 bytes a second
 * @param laneGbps what one transfer alone can use of it; 0 for all
 * @param rampBytes bytes more that each transfer seems to have: half the rate is reached by
 *     messages of this size
 * @param duplex whether both directions have the full rate at once
 * @param portPerRank between nodes: whether each rank of a node has a link of its own
 * @param coreGbps how fast one core moves the bytes, where cores do; 0 where hardware does
 * @param direct whether an engine can multiply rows where they lie in a peer's memory
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
        /** One port for each end; any two ports are joined at full rate. */
        SWITCH,
        /** A link from each end to the next; further ends are reached through those between. */
        RING,
        /** Links along each dimension, the ends of each row joined. */
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

    /** Of a torus, as many as may be asked for in a file: too many for whole numbers. */
    double places() {
        return torus.stream().mapToDouble(Integer::doubleValue).reduce(1, (a, b) -> a * b);
    }

    /** With a part of the rate; one transfer, or one core, has no less than before. */
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
