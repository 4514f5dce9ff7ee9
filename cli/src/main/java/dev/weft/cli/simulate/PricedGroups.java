package dev.weft.cli.simulate;

import dev.weft.cli.console.Console;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.plan.Hosts;
import dev.weft.report.RunRecord;
import dev.weft.report.Views;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.sim.Machine;
import dev.weft.sim.Prediction;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The groups of a world as a machine would run them at the same time. Each is priced separately, on
 * the nodes of its ranks. It has its own links between ranks; of what all ranks of a node share
 * (cores, a bus, one link to other nodes) it has a share by its ranks there.
 *
 * @param world the ranks of the world, some of which may be in no group
 * @param priced by group
 */
public record PricedGroups(ReplicaGroups groups, int world, List<Priced> priced) {

    /** The price of a group's call. */
    public record Priced(PlanSearch search, Candidate chosen, Prediction call, Views views) {

        private double ns() {
            return views.pipelined().median();
        }
    }

    /**
     * Prices groups that are alike once.
     *
     * @param alone the search for a group that has the machine to itself
     * @param pricing prices the search of a group
     */
    public static PricedGroups of(
            ReplicaGroups groups,
            int world,
            Function<List<Integer>, PlanSearch> alone,
            BiFunction<PlanSearch, List<Integer>, Priced> pricing) {
        Map<PlanSearch, Priced> known = new HashMap<>();
        List<Priced> priced = new ArrayList<>();
        for (List<Integer> group : groups.groups()) {
            PlanSearch search = inWorld(groups, world, group, SimRules.checked(alone.apply(group)));
            priced.add(known.computeIfAbsent(search, one -> pricing.apply(one, group)));
        }
        return new PricedGroups(groups, world, priced);
    }

    private static PlanSearch inWorld(
            ReplicaGroups groups, int world, List<Integer> group, PlanSearch alone) {
        if (groups.isAll(world)) {
            return alone;
        }
        Machine machine = alone.machine();
        Hosts nodes = machine.hosts(world);
        int first = group.getFirst();
        long here = group.stream().filter(rank -> nodes.shareMemory(first, rank)).count();
        long all =
                IntStream.range(0, world)
                        .filter(rank -> nodes.shareMemory(first, rank) && groups.groupOf(rank) >= 0)
                        .count();
        return new PlanSearch(
                machine.withShare((int) here, (int) all), alone.problem().on(nodes.among(group)));
    }

    /** The group that takes longest, or the first such. */
    public Priced slowest() {
        return Collections.max(priced, Comparator.comparingDouble(Priced::ns));
    }

    /** How all ranks are placed on the machine's nodes. */
    public List<Integer> hosts() {
        PlanSearch first = priced.getFirst().search();
        return (groups.isAll(world) ? first.hosts() : first.machine().hosts(world)).sizes();
    }

    /** Groups of different sizes may choose differently. */
    public String algorithms() {
        return priced.stream()
                .map(one -> one.chosen().algorithm().label())
                .distinct()
                .collect(Collectors.joining(", "));
    }

    /** Prints the time of every group, if there are several. */
    public void tell(Console console) {
        if (groups.count() == 1) {
            return;
        }
        console.info(
                "Every group is priced with links of its own and its share of its nodes' cores and"
                        + " buses; the views are the slowest one's:");
        for (Priced one : priced.stream().distinct().toList()) {
            List<List<Integer>> alike =
                    IntStream.range(0, priced.size())
                            .filter(g -> priced.get(g) == one)
                            .mapToObj(g -> groups.groups().get(g))
                            .toList();
            String first = new ReplicaGroups(alike.subList(0, 1)).toString();
            String more = alike.size() == 1 ? "" : " and " + (alike.size() - 1) + " more like it";
            console.info("  ranks %s%s: %.3f ms", first, more, one.ns() / 1e3);
        }
    }

    /** What all ranks do, in order; if there are very many, what some of the slowest group do. */
    public List<RunRecord.Rank> ranks() {
        int members = groups.groups().stream().mapToInt(List::size).sum();
        int only =
                members > SimTimelines.MOST_RANKS_WITH_SPANS && groups.count() > 1
                        ? priced.indexOf(slowest())
                        : -1;
        Map<PlanSearch, List<RunRecord.Rank>> known = new HashMap<>();
        List<RunRecord.Rank> ranks = new ArrayList<>();
        for (int g = 0; g < groups.count(); g++) {
            if (only >= 0 && g != only) {
                continue;
            }
            Priced one = priced.get(g);
            List<RunRecord.Rank> ofGroup =
                    known.computeIfAbsent(
                            one.search(), search -> SimTimelines.of(search, one.chosen()).ranks());
            for (RunRecord.Rank rank : ofGroup) {
                ranks.add(
                        new RunRecord.Rank(
                                groups.groups().get(g).get(rank.rank()),
                                g,
                                rank.shardRows(),
                                rank.chunkRows(),
                                rank.timeline()));
            }
        }
        ranks.sort(Comparator.comparingInt(RunRecord.Rank::rank));
        return ranks;
    }
}
