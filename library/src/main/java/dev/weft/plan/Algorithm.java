package dev.weft.plan;

import java.util.List;
import java.util.Locale;

/** Weft's own ways to gather: names for ways to write plans. */
public enum Algorithm implements PlanWriter {
    /** Weft chooses among the others. */
    AUTO,
    /** Each rank hands chunks to its successor, in one direction. */
    RING,
    /** Both directions at once, half the hops. */
    BIDIRECTIONAL_RING,
    /** The owner writes its chunks to every peer. */
    MESH_PUSH,
    /** The reader copies chunks from every peer, starting with its successor. */
    MESH_PULL,
    /** Peers share memory: rows are multiplied straight out of the peer's shard. */
    DIRECT,
    /** Gather everything, then multiply: no overlap. */
    SEQUENTIAL;

    @Override
    public List<RankPlan> plans(Chunks chunks, int lanes, Hosts hosts) {
        return Planner.plans(this, chunks, lanes, hosts);
    }

    @Override
    public boolean isSymmetric() {
        return true;
    }

    @Override
    public String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** The lanes of each rank's plan where so many are wanted: none where nothing travels. */
    public int lanes(Hosts hosts, int requested) {
        return Planner.lanes(this, hosts, requested);
    }

    /**
     * A ring in one direction that keeps no gathered A: shards arrive in two buffers in turn. Every
     * lane carries its part of each shard.
     */
    public static PlanWriter pingPongRing() {
        return Planner.pingPongRing();
    }

    /** The algorithm named {@code label}; the inverse of {@link #label()}. */
    public static Algorithm of(String label) {
        return Planner.named(label, List.of(values()));
    }
}
