package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.bench.cpu.RandomProblem.Launcher;
import dev.weft.bench.cpu.RandomProblem.Split;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

class RandomProblemTest {

    private static final List<RandomProblem> ALL = RandomProblem.all();

    private static <T> Map<T, Long> counts(Function<RandomProblem, T> what) {
        return ALL.stream().collect(Collectors.groupingBy(what, Collectors.counting()));
    }

    @Test
    void areTheSameInEveryProcess() {
        assertEquals(ALL, RandomProblem.all());
        assertEquals(
                "#0 threads 3: 236 x 760 x 160 bf16 even",
                ALL.getFirst().describe(),
                "seed " + RandomProblem.SEED);
    }

    @Test
    void standAtTheirIndex() {
        for (int i = 0; i < ALL.size(); i++) {
            assertEquals(i, ALL.get(i).index());
        }
    }

    @Test
    void areSixtyOfAllLaunchers() {
        assertEquals(
                Map.of(Launcher.THREADS, 22L, Launcher.PROCESSES, 14L, Launcher.LAB, 24L),
                counts(RandomProblem::launcher));
    }

    @Test
    void areAMixOfEverythingElse() {
        assertEquals(Set.of(2, 3, 4, 5, 6), counts(RandomProblem::ranks).keySet());
        assertEquals(Split.values().length, counts(RandomProblem::split).size());
        Map<DType, Long> types = counts(RandomProblem::dtype);
        assertTrue(types.get(DType.FP32) >= 15 && types.get(DType.BF16) >= 15, types.toString());
        Map<Boolean, Long> kept = counts(RandomProblem::keepGathered);
        assertTrue(kept.get(true) >= 15 && kept.get(false) >= 15, kept.toString());
    }

    @Test
    void haveShardsAsTheySay() {
        for (RandomProblem problem : ALL) {
            Shards shards = problem.shards();
            long empty = 0;
            for (int rank = 0; rank < shards.ranks(); rank++) {
                empty += shards.rows(rank) == 0 ? 1 : 0;
            }
            assertEquals(problem.split() == Split.ONE_EMPTY ? 1 : 0, empty, problem.describe());
            boolean even = shards.equals(Shards.even(shards.totalRows(), shards.ranks()));
            assertTrue(problem.split() != Split.EVEN || even, problem.describe());
        }
        assertTrue(
                ALL.stream()
                        .filter(p -> p.split() == Split.UNEVEN)
                        .noneMatch(
                                p ->
                                        p.shards()
                                                .equals(
                                                        Shards.even(
                                                                p.shards().totalRows(),
                                                                p.ranks()))));
    }

    @Test
    void stayWithinTheLimits() {
        for (RandomProblem p : ALL) {
            long rows = p.shards().totalRows();
            String what = p.describe();
            assertTrue(rows >= 64 && rows <= 8192, what);
            assertTrue(p.inner() >= 64 && p.inner() <= 4096, what);
            assertTrue(p.columns() >= 16 && p.columns() <= 2048, what);
            double operations = 2.0 * p.ranks() * rows * p.inner() * p.columns();
            assertTrue(operations <= RandomProblem.MOST_OPERATIONS, what);
            long bytes = rows * p.inner() * p.dtype().bytes();
            assertTrue(p.ranks() * bytes <= RandomProblem.MOST_BYTES, what);
        }
    }

    @Test
    void ofTheLabHaveTwoHostsAndAllRates() {
        List<RandomProblem> lab = RandomProblem.of(Launcher.LAB, Integer.MAX_VALUE);
        for (RandomProblem p : lab) {
            assertEquals(p.ranks(), RandomProblem.LAB_HOSTS * p.ranksPerHost());
            long bytes = p.shards().totalRows() * p.inner() * p.dtype().bytes();
            double seconds = RandomProblem.linkSeconds(bytes, p.rate());
            assertTrue(seconds <= RandomProblem.MOST_LINK_SECONDS, p.describe());
        }
        Map<String, Long> starts =
                lab.stream()
                        .collect(
                                Collectors.groupingBy(
                                        p -> p.rate() + " " + p.ranksPerHost(),
                                        Collectors.counting()));
        assertEquals(RandomProblem.LAB_RATES.size() * 2, starts.size(), starts.toString());
        assertFalse(starts.values().stream().anyMatch(count -> count != 4), starts.toString());
    }

    @Test
    void timeOnALink() {
        // Half of it each way: 10^6 bytes at 100 Mbit/s.
        assertEquals(0.08, RandomProblem.linkSeconds(2_000_000, "100mbit"), 1e-12);
        assertEquals(0.004, RandomProblem.linkSeconds(2_000_000, "2gbit"), 1e-12);
    }

    @Test
    void areFewerWhereAskedFor() {
        assertEquals(ALL.subList(22, 24), RandomProblem.of(Launcher.PROCESSES, 2));
    }
}
