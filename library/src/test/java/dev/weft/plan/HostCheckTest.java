package dev.weft.plan;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The checker finds what is wrong with a hierarchical plan of which only one thing is wrong. */
class HostCheckTest {

    private static final Chunks CHUNKS = Chunks.byRows(Shards.of(4, 4, 4, 4), 6, 1, 1);
    private static final Hosts HOSTS = Hosts.of(2, 2);

    /** In these plans of one lane per kind. */
    private static final int NETWORK = 0;

    private static final int MEMORY = 1;

    @Test
    void findsFlatPlansOnHierarchicalHosts() {
        refuses("lane 0 goes both within and between hosts", flat(Algorithm.MESH_PUSH, 1));
        refuses(
                "rank 0, source 0, chunk 0: crosses the network to host 1 more than once",
                flat(Algorithm.MESH_PUSH, 3));
        refuses("crosses the network to host 0 more than once", flat(Algorithm.MESH_PULL, 3));
        refuses(
                "rank 1, source 3, chunk 0: crosses the network to its owner's host",
                flat(Algorithm.RING, 1));
        refuses(
                "crosses the network to host 1 more than once",
                flat(Algorithm.BIDIRECTIONAL_RING, 2));
    }

    @Test
    void linksOfFlatPlansAreOverloaded() {
        for (Algorithm algorithm : PlanCases.hierarchicalAlgorithms()) {
            List<RankPlan> plans = flat(algorithm, 3);
            LinkCheck.check(algorithm, plans, Hosts.apart(4));
            PlanEdits.assertFault(
                    "overloads the link", () -> LinkCheck.check(algorithm, plans, HOSTS));
        }
    }

    private static List<RankPlan> flat(Algorithm algorithm, int lanes) {
        return PlanCases.plans(algorithm, CHUNKS, lanes);
    }

    /** One transfer is taken from its lane and put, with other ends, into another one. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                // algorithm | rank | from | to | source | chunk | rank | lane | from | to | fault
                "MESH_PUSH | 2 | 2 | 3 | 0 | 2 | 0 | 0 | 0 | 3"
                        + " | rank 0, source 0, chunk 2: crosses the network to host 1 more than"
                        + " once",
                "MESH_PUSH | 0 | 0 | 1 | 0 | 2 | 2 | 0 | 2 | 1"
                        + " | rank 2, source 0, chunk 2: crosses the network to its owner's host",
                "MESH_PULL | 3 | 1 | 3 | 1 | 2 | 3 | 0 | 0 | 3"
                        + " | rank 3, source 1, chunk 2: is got from rank 0 of another host, which"
                        + " does not own it",
                "RING      | 2 | 2 | 3 | 0 | 3 | 2 | 0 | 2 | 3"
                        + " | rank 2, source 0, chunk 3: lane 0 goes both within and between hosts",
                "MESH_PULL | 1 | 3 | 1 | 3 | 2 | 1 | 1 | 0 | 1"
                        + " | source 3, chunk 2: is forwarded in a circle"
            })
    void findsAChunkThatGoesAnotherWay(
            Algorithm algorithm,
            int rank,
            int from,
            int to,
            int source,
            int chunk,
            int toRank,
            int toLane,
            int newFrom,
            int newTo,
            String fault) {
        List<RankPlan> plans = plans(algorithm);
        Transfer transfer = find(plans, from, to, source, chunk);
        refuses(fault, moved(plans, rank, transfer, toRank, toLane, newFrom, newTo));
    }

    @Test
    void findsAChunkThatEntersAtAnotherRankThanItsGateway() {
        List<RankPlan> plans = plans(Algorithm.MESH_PUSH);
        List<RankPlan> entered = moved(plans, 0, find(plans, 0, 2, 0, 2), 0, NETWORK, 0, 3);
        List<RankPlan> passedOn = moved(entered, 2, find(plans, 2, 3, 0, 2), 3, MEMORY, 3, 2);
        PlanEdits.assertFault(
                "rank 0, source 0, chunk 2: overloads the link from rank 0 to rank"
                        + " 3: mesh-push needs at most 0.0 rows there",
                () -> LinkCheck.check(Algorithm.MESH_PUSH, passedOn, HOSTS));
    }

    @Test
    void findsARankThatForwardsWhatItIsNoGatewayFor() {
        Hosts hosts = Hosts.of(3, 1);
        List<RankPlan> plans = PlanCases.plans(Algorithm.MESH_PUSH, CHUNKS, 2, hosts);
        AlgorithmCheck.check(Algorithm.MESH_PUSH, plans, hosts);
        List<RankPlan> chained = moved(plans, 0, find(plans, 0, 2, 3, 1), 1, MEMORY, 1, 2);
        PlanEdits.assertFault(
                "overloads the link from rank 1 to rank 2: mesh-push needs at",
                () -> AlgorithmCheck.check(Algorithm.MESH_PUSH, chained, hosts));
    }

    @Test
    void findsMatesRowsThatComeAfterTheNetworks() {
        List<RankPlan> plans = plans(Algorithm.MESH_PUSH);
        // Blocks 4 to 7 are the mate's, by another lane than block 8.
        refuses(
                "rank 0, source 1, chunk 3: block of 1 rows from row 3 on is a host mate's and"
                        + " comes after rows of other hosts",
                PlanEdits.editConsumption(plans, 0, PlanEdits.swap(7, 8)));
    }

    @Test
    void findsGetsThatWaitForEachOther() {
        // Mates that fetch from each other before they fetch from the network, in one lane each.
        List<RankPlan> plans = plans(Algorithm.MESH_PULL);
        DryRun.run(plans);
        List<RankPlan> inOneLane = plans;
        for (RankPlan plan : plans) {
            List<Transfer> all = new ArrayList<>(plan.lanes().get(MEMORY).transfers());
            all.addAll(plan.lanes().get(NETWORK).transfers());
            inOneLane = PlanEdits.editLane(inOneLane, plan.rank(), MEMORY, old -> all);
            inOneLane = PlanEdits.editLane(inOneLane, plan.rank(), NETWORK, old -> List.of());
        }
        List<RankPlan> waiting = inOneLane;
        PlanEdits.assertFault(
                "rank 0, source 3, chunk 0: waits forever: transfer from rank 1 to"
                        + " rank 0 needs the chunk to arrive at rank 1",
                () -> DryRun.run(waiting));
    }

    @Test
    void findsARingOfHostsThatForwardsBeforeItSends() {
        Hosts hosts = Hosts.of(2, 1, 1);
        List<RankPlan> plans = PlanCases.plans(Algorithm.RING, CHUNKS, 2, hosts);
        List<RankPlan> edited = plans;
        for (int rank : new int[] {0, 2, 3}) {
            edited = PlanEdits.editLane(edited, rank, NETWORK, PlanEdits.swap(0, 4));
        }
        List<RankPlan> forwardsFirst = edited;
        PlanEdits.assertFault("waits forever", () -> DryRun.run(forwardsFirst));
    }

    @Test
    void findsPlansThatDoNotFitTheHosts() {
        refuses("rank 0: multiplies in place what lies on 2 hosts", flat(Algorithm.DIRECT, 1));
        var refused =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> PlanChecker.check(plans(Algorithm.RING), Hosts.of(2, 1)));
        assertTrue(
                refused.getMessage().contains("hosts of 2+1 ranks for 4 plans"),
                refused.getMessage());
    }

    @Test
    void hierarchicalPlansAreNoFlatOnes() {
        for (Algorithm algorithm : PlanCases.hierarchicalAlgorithms()) {
            List<RankPlan> plans = plans(algorithm);
            AlgorithmCheck.check(algorithm, plans, HOSTS);
            assertThrows(
                    PlanException.class,
                    () -> AlgorithmCheck.check(algorithm, plans),
                    algorithm.label());
        }
    }

    private static List<RankPlan> plans(Algorithm algorithm) {
        return PlanCases.plans(algorithm, CHUNKS, 2, HOSTS);
    }

    private static Transfer find(List<RankPlan> plans, int from, int to, int source, int chunk) {
        return plans.get(to).arrivals().stream()
                .flatMap(lane -> lane.transfers().stream())
                .filter(t -> t.from() == from && t.source() == source && t.chunk() == chunk)
                .findFirst()
                .orElseThrow();
    }

    /** The plans with other ends of one transfer, put at the end of another lane. */
    private static List<RankPlan> moved(
            List<RankPlan> plans,
            int rank,
            Transfer transfer,
            int toRank,
            int toLane,
            int from,
            int to) {
        List<RankPlan> result = plans;
        for (Lane lane : plans.get(rank).lanes()) {
            result =
                    PlanEdits.editLane(
                            result,
                            rank,
                            lane.index(),
                            transfers -> {
                                transfers.remove(transfer);
                                return transfers;
                            });
        }
        result =
                PlanEdits.editLane(
                        result,
                        toRank,
                        toLane,
                        transfers -> {
                            transfers.add(PlanEdits.withEnds(transfer, from, to));
                            return transfers;
                        });
        return PlanEdits.matchArrivals(result);
    }

    private static void refuses(String message, List<RankPlan> plans) {
        PlanEdits.assertFault(
                message,
                () -> AlgorithmCheck.check(Algorithm.of(plans.getFirst().name()), plans, HOSTS));
    }
}
