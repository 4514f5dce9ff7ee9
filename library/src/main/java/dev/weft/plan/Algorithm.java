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

    /**
     * A ring through two buffers, as {@link #pingPongRing}, in which the rows of a shard are {@code
     * programs x lanes} slices, as nearly equal as rows allow. A slice belongs to one program,
     * which multiplies it, and to one lane, which moves it; all lanes move at the same time. What
     * is given as chunks is only taken as how large they should be: chunks and blocks end where
     * slices do.
     *
     * @param byLane whether slices are numbered lane after lane, slice {@code lane * programs +
     *     program}, and not program after program, slice {@code program * lanes + lane}
     */
    public static PlanWriter slicedRing(int programs, int lanes, boolean byLane) {
        return new SlicedRing(programs, lanes, byLane);
    }

    /**
     * Another way to gather, shared by the programs of a rank: program p of P moves and consumes
     * the p-th P-th of every shard's rows, with lanes of its own. Shards are cut into as many whole
     * chunks for each program.
     *
     * @param base not {@link #AUTO}, which has no plans of its own
     */
    public static PlanWriter byPrograms(PlanWriter base, int programs) {
        return new ProgramPlans(base, programs);
    }

    /** The algorithm named {@code label}; the inverse of {@link #label()}. */
    public static Algorithm of(String label) {
        return Planner.named(label, List.of(values()), Algorithm::label);
    }
}
