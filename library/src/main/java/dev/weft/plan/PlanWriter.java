package dev.weft.plan;

import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;

/**
 * A way to gather, as the plans that it writes. {@link Algorithm} has those of Weft; others can be
 * written outside of it, most easily with a {@link PlanBuilder}. Pure: the same arguments give the
 * same plans on every rank, and any thread may call it.
 */
public interface PlanWriter {

    /** The name on the command line, in plans and in run records. */
    String label();

    /**
     * What every rank does, in rank order. The list may write a plan when it is asked for it.
     *
     * @param chunks how the shards are cut; see {@link #cut}
     * @param lanes communication workers per rank, as far as the algorithm can use them
     * @param hosts which ranks share memory
     */
    List<RankPlan> plans(Chunks chunks, int lanes, Hosts hosts);

    /**
     * The chunks of the plans that are written where these are given: others only where the way to
     * gather has rules of its own for where chunks and blocks end.
     */
    default Chunks cut(Chunks given) {
        return given;
    }

    /**
     * Whether all ranks do the same, given equal shards and equal hosts: the plan of rank {@code r
     * + s} is that of rank r with s added to all ranks' numbers, for every s that is a multiple of
     * the ranks per host; once all is gathered, the order of products does not count. One rank's
     * times then stand for all in a simulation.
     */
    default boolean isSymmetric() {
        return false;
    }

    /**
     * The writer of that name: one of {@link Algorithm}, or one that a jar on the class path
     * provides (see {@link ServiceLoader}).
     *
     * @throws IllegalArgumentException if there is none, with the names that there are
     */
    static PlanWriter named(String label) {
        List<PlanWriter> all = new ArrayList<>(List.of(Algorithm.values()));
        ServiceLoader.load(PlanWriter.class).forEach(all::add);
        return Planner.named(label, all, PlanWriter::label);
    }
}
