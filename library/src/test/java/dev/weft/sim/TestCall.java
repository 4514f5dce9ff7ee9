package dev.weft.sim;

import dev.weft.plan.Chunks;
import dev.weft.plan.GatherSteps;
import dev.weft.plan.Hosts;
import dev.weft.plan.Placements;
import dev.weft.plan.PlanWriter;
import dev.weft.search.MachinePlans;
import dev.weft.tensor.DType;
import java.util.List;
import java.util.Map;

/** A call that a test prices, on whatever machine. */
record TestCall(
        PlanWriter writer,
        Chunks chunks,
        int lanes,
        Hosts hosts,
        DType aType,
        DType outType,
        List<Long> columns,
        boolean keepGathered,
        int workers,
        Map<Integer, Double> slowRanks) {

    Scenario on(Machine machine) {
        long n = columns.stream().mapToLong(Long::longValue).sum();
        MachinePlans own = new MachinePlans(machine, writer);
        return new Scenario(
                GatherSteps.of(own.plans(chunks, lanes, hosts), n),
                Placements.gather(chunks.shards(), chunks.cols(), n),
                chunks.total(),
                own.isSymmetric(),
                hosts,
                aType,
                outType,
                columns,
                keepGathered,
                workers,
                slowRanks);
    }

    int ranks() {
        return hosts.ranks();
    }
}
