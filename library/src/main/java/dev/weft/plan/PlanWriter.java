package dev.weft.plan;

import java.util.List;
import java.util.ServiceLoader;

/**
 * A way to gather: it writes the plans. {@link Algorithm} has Weft's own; programs can add others,
 * most easily with a {@link PlanBuilder}. Pure and thread-safe: the same arguments give the same
 * plans on every rank.
 */
public interface PlanWriter {

    /** The name on the command line, in plans and in run records. */
    String label();

    /**
     * What every rank does, in rank order. The list may write each plan on demand.
     *
     * @param chunks how the shards are cut; see {@link #cut}
     * @param lanes communication workers per rank, as far as the algorithm can use them
     * @param hosts which ranks share memory
     * @throws IllegalArgumentException if the algorithm cannot gather this
     */
    List<RankPlan> plans(Chunks chunks, int lanes, Hosts hosts);

    /**
     * The chunks that the plans use if these are given. They differ only if the algorithm has its
     * own rules for where chunks and blocks end.
     */
    default Chunks cut(Chunks given) {
        return given;
    }

    /**
     * Whether all ranks do the same, given equal shards and equal hosts: the plan of rank {@code r
     * + s} is that of rank r with s added to all rank numbers, for every s that is a multiple of
     * the ranks per host. The order of products after a complete gather does not matter. One rank's
     * times then stand for all in a simulation.
     */
    default boolean isSymmetric() {
        return false;
    }

    /**
     * The writer with this name: one of {@link Algorithm}, or one that a jar on the class path
     * provides (see {@link ServiceLoader}).
     *
     * @throws IllegalArgumentException if there is none; the message lists the names
     * @throws PlanException if there is none, and one on the class path cannot be loaded
     */
    static PlanWriter named(String label) {
        return Planner.named(
                label,
                List.of(Algorithm.values()),
                ServiceLoader.load(PlanWriter.class),
                GuardedWriter::of,
                PlanWriter::label);
    }
}
