package dev.weft.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.model.Explorer.Search;
import dev.weft.model.SearchResult.Verdict;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.Reduction;
import dev.weft.plan.Shards;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;
import org.junit.jupiter.params.provider.MethodSource;

class ExplorerTest {

    private static final int MOST_STATES = 2_000_000;

    private static SearchResult explore(Setting setting, Mutant mutant, Search search) {
        Model model = Protocol.model(setting, mutant, Faults.none());
        return Explorer.explore(model, search, MOST_STATES);
    }

    static Stream<Setting> settings() {
        return Stream.of(
                Cases.of(Algorithm.RING, 1, 3, 2, 1),
                Cases.of(Algorithm.RING, 1, 3, 1, 1, 0),
                Cases.of(Algorithm.BIDIRECTIONAL_RING, 2, 3, 2, 1),
                Cases.of(Algorithm.MESH_PUSH, 1, 4, 2, 0),
                Cases.of(Algorithm.MESH_PULL, 1, 4, 1, 1),
                Cases.of(Algorithm.DIRECT, 1, 4, 1, 1, 0),
                Cases.of(Algorithm.SEQUENTIAL, 1, 4, 1, 1),
                Cases.of(Algorithm.MESH_PUSH, 1, Hosts.of(2, 1), 2, 1, 0, 1),
                Cases.pingPong(4, 2, 1),
                Cases.pingPong(3, 1, 1, 0),
                Cases.pingPong(4, 1, 1).inAnyOrder().withWrap(),
                Cases.of(Algorithm.RING, 1, 3, 1, 1).withCounters(),
                Cases.sums(Reduction.CHAIN, false, Shards.of(1, 1), 3, 1, 1),
                Cases.sums(Reduction.CHAIN, true, Shards.of(1, 1), 2, 1, 1).inAnyOrder(),
                Cases.sums(Reduction.MESH_PUSH, true, Shards.of(1, 1), 3, 1, 1).withWrap(),
                Cases.sums(Reduction.SEQUENTIAL, false, Shards.of(1, 1), 3, 1, 1),
                Cases.sums(Reduction.DIRECT, true, Shards.of(1, 1), 3, 1, 1));
    }

    @ParameterizedTest
    @MethodSource("settings")
    void everySearchProvesTheProtocol(Setting setting) {
        SearchResult every = explore(setting, Mutant.NONE, Search.EVERY_STEP);
        SearchResult full = explore(setting, Mutant.NONE, Search.FULL);
        SearchResult reduced = explore(setting, Mutant.NONE, Search.REDUCED);
        assertEquals(Verdict.PROVEN, every.verdict(), every.problem());
        assertEquals(Verdict.PROVEN, full.verdict(), full.problem());
        assertEquals(Verdict.PROVEN, reduced.verdict(), reduced.problem());
        // All runs end in the same state, after the same number of steps.
        assertEquals(full.depth(), reduced.depth());
        assertTrue(reduced.states() < full.states() && full.states() < every.states());
    }

    @ParameterizedTest
    @EnumSource(mode = Mode.EXCLUDE, names = "NONE")
    void everySearchFindsTheMutant(Mutant mutant) {
        for (Setting setting : Catalogue.against(mutant)) {
            for (Search search : Search.values()) {
                SearchResult outcome = explore(setting, mutant, search);
                assertEquals(Verdict.WRONG_READ, outcome.verdict(), search + " of " + setting);
                assertFalse(outcome.trace().isEmpty());
                assertTrue(outcome.problem().contains("expected row"), outcome.problem());
            }
        }
    }

    @ParameterizedTest
    @EnumSource(mode = Mode.EXCLUDE, names = "NONE")
    void whereAMutantIsFoundTheProtocolItselfIsProven(Mutant mutant) {
        for (Setting setting : Catalogue.against(mutant)) {
            assertTrue(explore(setting, Mutant.NONE, Search.FULL).isProven(), setting.toString());
        }
    }

    @Test
    void searchesAgreeOnRandomSettingsAndMutants() {
        long seed = 20261115;
        SplittableRandom random = new SplittableRandom(seed);
        int wrong = 0;
        int compared = 0;
        for (int i = 0; i < 80 && compared < 60; i++) {
            Setting setting = randomSetting(random);
            Mutant mutant = Mutant.values()[random.nextInt(Mutant.values().length)];
            String what = "seed " + seed + ", case " + i + ": " + mutant + " in " + setting;
            Verdict every = explore(setting, mutant, Search.EVERY_STEP).verdict();
            if (every == Verdict.LIMIT) {
                // Too many states for the longest search: there is nothing to compare with.
                continue;
            }
            compared++;
            assertEquals(every, explore(setting, mutant, Search.FULL).verdict(), what);
            assertEquals(every, explore(setting, mutant, Search.REDUCED).verdict(), what);
            wrong += every == Verdict.WRONG_READ ? 1 : 0;
        }
        assertEquals(60, compared);
        assertTrue(wrong > 10, "only " + wrong + " cases were wrong: the test says little");
    }

    private static Setting randomSetting(SplittableRandom random) {
        long[] rows = new long[2 + random.nextInt(2)];
        for (int r = 0; r < rows.length; r++) {
            rows[r] = random.nextInt(rows.length == 2 ? 3 : 2);
        }
        int calls = 3;
        if (random.nextInt(3) == 0) {
            Reduction[] reductions = Reduction.values();
            Reduction reduction = reductions[1 + random.nextInt(reductions.length - 1)];
            return Cases.sums(
                    reduction,
                    random.nextBoolean(),
                    Shards.even(rows.length, rows.length),
                    2,
                    rows);
        }
        Algorithm[] algorithms = Algorithm.values();
        Algorithm algorithm = algorithms[random.nextInt(algorithms.length)];
        Setting setting =
                algorithm == Algorithm.AUTO
                        ? Cases.pingPong(calls, rows)
                        : Cases.of(algorithm, 1, calls, rows);
        return random.nextInt(3) == 0 ? setting.withCounters() : setting;
    }

    @Test
    void aLostSignalIsADeadlockThatNamesTheWait() {
        Setting setting = Cases.of(Algorithm.MESH_PULL, 1, 2, 1, 1);
        Model model = Protocol.model(setting, Mutant.NONE, Faults.withoutSignal(0));
        SearchResult outcome = Explorer.explore(model, Search.FULL, MOST_STATES);
        assertEquals(Verdict.DEADLOCK, outcome.verdict());
        assertTrue(
                outcome.problem().contains("rank 1 worker-0 waits for start[0] to reach 1"),
                outcome.problem());
    }

    @Test
    void tooManyStatesProveNothing() {
        Setting setting = Cases.of(Algorithm.RING, 1, 3, 2, 1);
        Model model = Protocol.model(setting, Mutant.NONE, Faults.none());
        SearchResult outcome = Explorer.explore(model, Search.FULL, 100);
        assertEquals(Verdict.LIMIT, outcome.verdict());
        assertFalse(outcome.isProven());
        assertEquals("more than 100 states", outcome.problem());
    }

    @Test
    void theFirstTraceIsAsShortAsAny() {
        Setting setting = Cases.of(Algorithm.DIRECT, 1, 3, 1, 0);
        SearchResult outcome = explore(setting, Mutant.START_FIRST, Search.EVERY_STEP);
        assertEquals(
                "rank 1 worker-0, call 1: begins to read the product of row 0",
                outcome.trace().getLast());
        assertEquals(outcome.depth() + 1, outcome.trace().size());
    }
}
