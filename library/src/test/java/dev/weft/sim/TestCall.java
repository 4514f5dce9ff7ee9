package dev.weft.sim;

import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Hosts;
import dev.weft.search.MachinePlans;
import dev.weft.tensor.DType;
import java.util.List;
import java.util.Map;

/** A call that a test prices, on whatever machine. */
record TestCall(
        GatherWriter writer,
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
        GatherRequest request = new GatherRequest(chunks, lanes, hosts, n);
        return new Scenario(
                MachinePlans.of(machine, writer, request),
                request.placement(),
                chunks.total(),
                writer.isSymmetric(),
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
