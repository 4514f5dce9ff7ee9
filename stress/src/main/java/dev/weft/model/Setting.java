package dev.weft.model;

import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanChecker;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * What is checked: the plans of all ranks and the calls that they make back to back.
 *
 * @param label the algorithm and what is special here
 * @param hosts on which the ranks are
 * @param views one per call
 * @param firstCall the number of the first call; the words hold what the call before left
 * @param anyWorkers every row block has a worker of its own, so that blocks are taken in any order;
 *     otherwise a rank has one compute worker
 * @param summaries whether lanes count what they deliver
 */
record Setting(
        String label,
        List<RankPlan> plans,
        Hosts hosts,
        List<View> views,
        int firstCall,
        boolean anyWorkers,
        boolean summaries) {

    Setting {
        plans = List.copyOf(plans);
        views = List.copyOf(views);
    }

    /** Rows of one element, each a chunk and a block; the plans pass the checker. */
    static Setting of(PlanWriter writer, int lanes, int calls, long... rows) {
        return of(writer, lanes, Hosts.one(rows.length), calls, rows);
    }

    static Setting of(PlanWriter writer, int lanes, Hosts hosts, int calls, long... rows) {
        return of(
                writer.label() + where(hosts), hosts, calls, writer.plans(cut(rows), lanes, hosts));
    }

    /** The ring that keeps no gathered A. */
    static Setting pingPong(int calls, long... rows) {
        return of(
                "ring ping-pong",
                Hosts.one(rows.length),
                calls,
                Algorithm.pingPongRing().plans(cut(rows), 1, Hosts.one(rows.length)));
    }

    /**
     * A product that is summed over ranks.
     *
     * @param all whether every rank gets all rows
     * @param inner how K is spread over the ranks
     */
    static Setting sums(Reduction reduction, boolean all, Shards inner, int calls, long... rows) {
        return sums(reduction, all, inner, Hosts.one(rows.length), calls, rows);
    }

    static Setting sums(
            Reduction reduction, boolean all, Shards inner, Hosts hosts, int calls, long... rows) {
        List<RankPlan> plans = reduction.plans(cut(rows), inner, all, hosts);
        PlanChecker.check(plans, hosts, inner, all);
        String label = reduction.label() + (all ? " all-reduce" : " reduce-scatter");
        return of(label + where(hosts), hosts, calls, plans);
    }

    private static String where(Hosts hosts) {
        return hosts.count() == 1 ? "" : " on hosts " + hosts;
    }

    private static Setting of(String label, Hosts hosts, int calls, List<RankPlan> plans) {
        PlanChecker.check(plans, hosts);
        List<View> views = Collections.nCopies(calls, View.PIPELINED);
        return new Setting(label, plans, hosts, views, 1, false, false);
    }

    private static Chunks cut(long... rows) {
        return Chunks.byRows(Shards.of(rows), 1, 1, 1);
    }

    Setting withAnyWorkers() {
        return new Setting(
                label + ", any workers", plans, hosts, views, firstCall, true, summaries);
    }

    Setting withSummaries() {
        return new Setting(label + ", counters", plans, hosts, views, firstCall, anyWorkers, true);
    }

    /** Numbers of calls pass the largest int on the way. */
    Setting withWrap() {
        int first = Integer.MAX_VALUE - (calls() - 1) / 2;
        return new Setting(label + ", wrap", plans, hosts, views, first, anyWorkers, summaries);
    }

    Setting withViews(View... ofCalls) {
        List<View> list = Arrays.asList(ofCalls);
        return new Setting(label + ", views", plans, hosts, list, firstCall, anyWorkers, summaries);
    }

    /** Whether sums go from rank to rank, and not rows of A. */
    boolean sums() {
        return keeps(Storage.SUMS) || keeps(Storage.SUMS_IN_PLACE);
    }

    int ranks() {
        return plans.size();
    }

    int calls() {
        return views.size();
    }

    Chunks chunks() {
        return plans.getFirst().chunks();
    }

    boolean keeps(Storage storage) {
        return plans.getFirst().storage() == storage;
    }

    /** Chunks per rank, such as 2,0,1. */
    String chunkCounts() {
        return IntStream.range(0, ranks())
                .mapToObj(r -> String.valueOf(chunks().count(r)))
                .collect(Collectors.joining(","));
    }

    @Override
    public String toString() {
        return label + " of " + chunkCounts() + ", " + calls() + " calls";
    }
}
