package dev.weft.model;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Hosts;
import dev.weft.plan.ReductionRequest;
import dev.weft.plan.ReductionWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Placement;
import dev.weft.plan.step.StepChecker;
import dev.weft.plan.step.StepPlan;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Settings of Weft's own algorithms and of others'; their plans pass the checker. */
final class Cases {

    private Cases() {}

    /** Rows of one element, each a chunk and a block. */
    static Setting of(GatherWriter writer, int lanes, int calls, long... rows) {
        return of(writer, lanes, Hosts.one(rows.length), calls, rows);
    }

    static Setting of(GatherWriter writer, int lanes, Hosts hosts, int calls, long... rows) {
        return gather(writer.label() + where(hosts), writer, lanes, hosts, calls, rows);
    }

    /** The ring that keeps no gathered A. */
    static Setting pingPong(int calls, long... rows) {
        Hosts hosts = Hosts.one(rows.length);
        return gather("ring ping-pong", Algorithm.pingPongRing(), 1, hosts, calls, rows);
    }

    private static Setting gather(
            String label, GatherWriter writer, int lanes, Hosts hosts, int calls, long... rows) {
        Chunks chunks = cut(rows);
        GatherRequest request = new GatherRequest(chunks, lanes, hosts, 1);
        return checked(label, writer.plans(request), request.placement(), hosts, chunks, calls);
    }

    /**
     * A product that is summed over ranks.
     *
     * @param all whether every rank gets all rows
     * @param kParts how K is spread over the ranks
     */
    static Setting sums(
            ReductionWriter reduction, boolean all, Shards kParts, int calls, long... rows) {
        return sums(reduction, all, kParts, Hosts.one(rows.length), calls, rows);
    }

    static Setting sums(
            ReductionWriter reduction,
            boolean all,
            Shards kParts,
            Hosts hosts,
            int calls,
            long... rows) {
        Chunks chunks = cut(rows);
        ReductionRequest request =
                new ReductionRequest(chunks, kParts, all, reduction.order(), hosts);
        List<StepPlan> plans = reduction.plans(request);
        String label = reduction.label() + (all ? " all-reduce" : " reduce-scatter");
        return checked(label + where(hosts), plans, request.placement(), hosts, chunks, calls);
    }

    private static Setting checked(
            String label,
            List<StepPlan> written,
            Placement placement,
            Hosts hosts,
            Chunks chunks,
            int calls) {
        // Gathers are written whenever they are asked for.
        List<StepPlan> plans = List.copyOf(written);
        StepChecker.check(plans, placement, hosts::shareMemory);
        String counts =
                IntStream.range(0, hosts.ranks())
                        .mapToObj(rank -> String.valueOf(chunks.count(rank)))
                        .collect(Collectors.joining(","));
        return new Setting(label, plans, counts, chunks.shards(), calls);
    }

    private static String where(Hosts hosts) {
        return hosts.count() == 1 ? "" : " on hosts " + hosts;
    }

    private static Chunks cut(long... rows) {
        return Chunks.byRows(Shards.of(rows), 1, 1, 1);
    }
}
