package dev.weft.search;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.Pacing;
import dev.weft.plan.PlanChecker;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.sim.Machine;
import dev.weft.sim.Wiring.Topology;
import java.util.AbstractList;
import java.util.List;

/**
 * Writes plans the way a machine runs them. A sequential plan leaves the gather to the machine's
 * own all-gather, which is a ring if the links form rings, and between hosts. A kernel may also
 * take rows in its own order. Immutable and thread-safe.
 */
public record MachinePlans(Machine machine, PlanWriter writer) implements PlanWriter {

    @Override
    public String label() {
        return writer.label();
    }

    @Override
    public Chunks cut(Chunks given) {
        return writer.cut(given);
    }

    @Override
    public boolean isSymmetric() {
        return writer.isSymmetric();
    }

    @Override
    public List<RankPlan> plans(Chunks chunks, int lanes, Hosts hosts) {
        Topology topology = machine.node().topology();
        boolean goesRound =
                hosts.count() > 1 || topology == Topology.RING || topology == Topology.TORUS;
        boolean ownGather = writer == Algorithm.SEQUENTIAL && goesRound;
        List<RankPlan> written =
                (ownGather ? Algorithm.RING : writer).plans(chunks, Math.max(1, lanes), hosts);
        // What Weft has not written is proved as it was written: a machine's own order may differ.
        PlanChecker.checkGiven(written, hosts);
        return new AbstractList<>() {
            @Override
            public RankPlan get(int rank) {
                return adapted(written.get(rank));
            }

            @Override
            public int size() {
                return written.size();
            }
        };
    }

    private RankPlan adapted(RankPlan plan) {
        boolean first = writer == Algorithm.SEQUENTIAL;
        boolean bySource = machine.consumption() == Machine.Consumption.BY_SOURCE;
        if (bySource && plan.storage() == Storage.PING_PONG) {
            throw new IllegalArgumentException(
                    "a ping-pong ring on %s, which takes the shard first that comes last: expected a plan that gathers A"
                            .formatted(machine.name()));
        }
        RankPlan paced = first ? plan.with(label(), Pacing.GATHER_FIRST) : plan;
        // Once everything is gathered any order will do; starting from own rows, all ranks' orders
        // are alike.
        return first || bySource ? paced.withConsumption(plan.consumptionBySource()) : paced;
    }
}
