package dev.weft.plan;

import java.util.AbstractList;
import java.util.function.IntFunction;

/** Plans of all ranks, each written on demand: an operator needs only its own. */
final class WrittenPlans extends AbstractList<RankPlan> {

    private final int ranks;
    private final Hosts hosts;
    private final long digest;
    private final IntFunction<RankPlan> write;

    /** {@code digest} covers everything that determines the plans, except for the hosts. */
    WrittenPlans(int ranks, Hosts hosts, int digest, IntFunction<RankPlan> write) {
        this.ranks = ranks;
        this.hosts = hosts;
        this.digest = 31L * digest + hosts.sizes().hashCode();
        this.write = write;
    }

    @Override
    public RankPlan get(int rank) {
        return write.apply(rank);
    }

    @Override
    public int size() {
        return ranks;
    }

    boolean areFor(Hosts others) {
        return hosts.equals(others);
    }

    long digest() {
        return digest;
    }
}
