package dev.weft.search;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.search.PlanSearch.Budget;
import dev.weft.sim.Machines;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PlanSearchTest {

    private static PlanSearch search(String machine, Shards shards) {
        return new PlanSearch(
                Machines.named(machine), Problem.of(shards, 1024, 512, DType.FP16, DType.FP32));
    }

    private static PlanSearch search(String machine, Shards shards, Cut cut, int lanes) {
        return new PlanSearch(Machines.named(machine), problem(shards, 0, lanes, cut, null));
    }

    private static Problem problem(Shards shards, int workers, int lanes, Cut cut, Hosts hosts) {
        return new Problem(
                shards,
                1024,
                List.of(512L),
                DType.FP16,
                DType.FP32,
                false,
                workers,
                lanes,
                cut,
                hosts,
                Map.of(),
                null);
    }

    private static Set<PlanWriter> algorithms(List<Candidate> candidates) {
        return candidates.stream().map(Candidate::algorithm).collect(Collectors.toSet());
    }

    private static Set<Integer> chunks(List<Candidate> candidates, PlanWriter algorithm) {
        return candidates.stream()
                .filter(one -> one.algorithm() == algorithm)
                .map(Candidate::chunksPerSource)
                .collect(Collectors.toSet());
    }

    @ParameterizedTest
    @ValueSource(strings = {"Ascend910B1", "trn2", "h200-nvlink8", "cpu-100gbe"})
    void candidatesComeCheapestFirstEachOnceAndAtTheSimulatorsPrice(String machine) {
        PlanSearch search = search(machine, Shards.even(2048, 4));
        List<Candidate> candidates = search.candidates(Budget.THOROUGH);
        for (int i = 0; i < candidates.size(); i++) {
            Candidate one = candidates.get(i);
            assertEquals(search.price(one, View.PIPELINED).ns(), one.predictedNs());
            assertTrue(Double.isNaN(one.measuredNs()) && !one.chosen());
            assertTrue(one.predictedNs() >= candidates.getFirst().predictedNs());
            for (Candidate before : candidates.subList(0, i)) {
                assertFalse(one.isPlannedAs(before), one.toString());
                assertTrue(before.predictedNs() <= one.predictedNs());
            }
        }
        assertEquals(
                candidates.stream()
                        .filter(one -> one.algorithm() == Algorithm.SEQUENTIAL)
                        .findFirst()
                        .orElseThrow(),
                search.sequential(Budget.THOROUGH));
    }

    /** FGCC's ring with two buffers: memory limits one path, and two cores halve the products. */
    @Test
    void aRingInSlicesIsPricedByItsProgramsAndItsPath() {
        double onChip = slicedNs(2, true, View.COMPUTE_ONLY);
        double inMemory = slicedNs(2, false, View.COMPUTE_ONLY);
        assertTrue(onChip < inMemory, onChip + " and " + inMemory);
        double oneCore = slicedNs(1, true, View.COMPUTE_ONLY);
        assertTrue(oneCore > 1.8 * onChip && oneCore < 2.2 * onChip, oneCore + " and " + onChip);
        double whole = slicedNs(2, true, View.PIPELINED);
        assertTrue(whole >= onChip && whole >= slicedNs(2, true, View.COMM_ONLY));
        assertTrue(whole < onChip + slicedNs(2, true, View.COMM_ONLY));
    }

    private static double slicedNs(int programs, boolean onChip, View view) {
        PlanSearch search =
                PlanSearch.ofSlicedRing(
                        Machines.of("trn2", programs),
                        Shards.even(8192, 4),
                        8192,
                        256,
                        DType.BF16,
                        programs,
                        2,
                        onChip);
        return search.price(search.candidate(Algorithm.slicedRing(programs, 2, !onChip)), view)
                .ns();
    }

    @Test
    void whatTheMachineCannotDoIsNotAmongThem() {
        assertTrue(
                algorithms(search("cpu-100gbe", Shards.even(512, 4)).candidates(Budget.QUICK))
                        .contains(Algorithm.DIRECT));
        PlanSearch twoHosts = search("cpu-100gbe", Shards.even(512, 8));
        assertFalse(algorithms(twoHosts.candidates(Budget.QUICK)).contains(Algorithm.DIRECT));
        assertThrows(IllegalArgumentException.class, () -> twoHosts.candidate(Algorithm.DIRECT));
        PlanSearch tooMany = search("h200-pcie", Shards.even(512, 9));
        assertThrows(IllegalArgumentException.class, () -> tooMany.candidates(Budget.QUICK));
        assertEquals(
                Set.of(Algorithm.SEQUENTIAL),
                algorithms(search("h200-pcie", Shards.of(512)).candidates(Budget.QUICK)));
    }

    @Test
    void aQuickSearchTakesSomeOfTheCutsOfAThoroughOne() {
        PlanSearch search = search("cpu-100gbe", Shards.even(6 * 128 * 4, 4));
        List<Candidate> thorough = search.candidates(Budget.THOROUGH);
        List<Candidate> quick = search.candidates(Budget.QUICK);
        assertEquals(Set.of(4, 8, 16, 32, 64, 128), chunks(thorough, Algorithm.RING));
        assertEquals(Set.of(4, 16, 64), chunks(quick, Algorithm.RING));
        assertEquals(Set.of(64), chunks(quick, Algorithm.DIRECT));
        for (Candidate one : quick) {
            boolean direct = one.algorithm() == Algorithm.DIRECT;
            assertTrue(direct || thorough.contains(one), one.toString());
        }
    }

    @ParameterizedTest
    @CsvSource({"8, 64", "48, 64", "56, 16", "64, 16", "112, 4", "256, 4"})
    void fineCutsOfManyRanksAreLeftOutOfAQuickSearch(int ranks, int finest) {
        PlanSearch search = search("cpu-1gbe", Shards.even(6L * 64 * ranks, ranks));
        Set<Integer> chunks = chunks(search.candidates(Budget.QUICK), Algorithm.SEQUENTIAL);
        assertEquals(finest, chunks.stream().mapToInt(Integer::intValue).max().orElseThrow());
        assertTrue(chunks.contains(4));
    }

    @Test
    void pastSixtyFourRanksOnlyTheBestAndSequentialAreInEveryCut() {
        PlanSearch search = search("h200-nvlink8", Shards.even(128L * 128 * 72, 72));
        List<Candidate> candidates = search.candidates(Budget.THOROUGH);
        PlanWriter best = candidates.getFirst().algorithm();
        for (PlanWriter algorithm : algorithms(candidates)) {
            boolean all = algorithm == best || algorithm == Algorithm.SEQUENTIAL;
            assertEquals(
                    all ? Set.of(4, 8, 16, 32, 64, 128) : Set.of(32),
                    chunks(candidates, algorithm),
                    algorithm.label());
        }
    }

    @Test
    void aGivenCutAndGivenLanesAreKept() {
        Cut given = new Cut(24, 0, 128);
        PlanSearch search = search("cpu-100gbe", Shards.of(100, 0, 300), given, 3);
        for (Candidate one : search.candidates(Budget.THOROUGH)) {
            assertEquals(given, one.cut());
            assertEquals(3, one.lanes());
            assertEquals(Math.ceilDiv(300, 24) * (1024 / 128), one.chunksPerSource());
            assertEquals(24, search.chunkRows(one));
        }
        PlanSearch columns = search("cpu-100gbe", Shards.of(100, 300), new Cut(0, 0, 128), 0);
        List<Candidate> candidates = columns.candidates(Budget.QUICK);
        assertTrue(candidates.stream().allMatch(one -> one.cut().chunkCols() == 128));
        assertTrue(chunks(candidates, Algorithm.RING).size() > 1, "rows are left to the search");
    }

    @Test
    void theAscendKernelsOwnCutIsAmongThem() {
        PlanSearch search = search("Ascend910B1", Shards.even(2048, 4));
        Candidate own = search.candidate(Algorithm.MESH_PUSH);
        assertEquals(new Cut(128, 0, 1024), own.cut());
        assertEquals(24, own.lanes());
        assertTrue(search.candidates(Budget.THOROUGH).stream().anyMatch(own::isPlannedAs));
    }

    @Test
    void theProblemsHostsCountAndNotTheMachines() {
        Shards shards = Shards.even(512, 4);
        assertNull(Problem.of(shards, 8, 8, DType.FP16, DType.FP32).hosts());
        assertEquals(Hosts.one(4), search("cpu-100gbe", shards).hosts());
        Problem spread = problem(shards, 1, 0, Cut.AUTOMATIC, new Hosts(List.of(3, 1)));
        PlanSearch search = new PlanSearch(Machines.named("cpu-100gbe"), spread);
        assertEquals(spread.hosts(), search.hosts());
        List<Integer> beats = new ArrayList<>();
        List<Candidate> candidates = search.candidates(Budget.QUICK, () -> beats.add(1));
        assertEquals(candidates.size(), beats.size(), "a heartbeat after every price");
        assertEquals(4, search.steps(candidates.getFirst()).size());
    }
}
