package dev.weft.bench.measure;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tune.Quantiles;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** Made-up clocks: a turn moves the clock by what it says it took. */
class InterleavedTest {

    private long nowNs;
    private final List<String> order = new ArrayList<>();

    private Interleaved.Turn turn(String name, long... ns) {
        int[] calls = {0};
        return () -> {
            order.add(name);
            long taken = ns[Math.min(calls[0]++, ns.length - 1)];
            nowNs += taken;
            return taken;
        };
    }

    private Interleaved.Outcome measure(Interleaved.Effort effort, Interleaved.Turn... turns)
            throws IOException, InterruptedException {
        return new Interleaved(effort, () -> nowNs).measure(List.of(turns));
    }

    @Test
    void theRatioIsTheMedianOfTheRatiosOfTheRounds() {
        // The machine gets ten times slower in the middle: ratios of rounds do not see it.
        var outcome = new Interleaved.Outcome(new long[][] {{1, 1, 10, 10, 10}, {2, 3, 20, 5, 20}});
        assertEquals(2, outcome.speed(0, 1));
        assertEquals(0.5, outcome.speed(1, 0));
        assertEquals(10, outcome.medianNs(0));
        assertEquals(5, outcome.medianNs(1));
        assertEquals(20 - 3, outcome.spreadNs(1));
        assertEquals(5, outcome.rounds());
    }

    @Test
    void quantilesLieBetweenNeighbours() {
        assertEquals(2.5, Quantiles.quantile(new double[] {4, 1, 3, 2}, 0.5));
        assertEquals(1, Quantiles.quantile(new double[] {4, 1, 3, 2}, 0));
        assertEquals(4, Quantiles.quantile(new double[] {4, 1, 3, 2}, 1));
        assertEquals(7, Quantiles.quantile(new double[] {7}, 0.25));
    }

    @Test
    void whoBeginsChangesAndEveryOtherRoundGoesBackwards() throws Exception {
        var effort = new Interleaved.Effort(0, 0, 0, 4, 4);
        measure(effort, turn("a", 1), turn("b", 2), turn("c", 3));
        // One warm-up round, then four that count.
        assertEquals("abc abc acb bca bac", String.join("", order).replaceAll("...(?=.)", "$0 "));
    }

    @Test
    void everyThingHasOneTurnInEveryRound() {
        for (int round = -7; round < 7; round++) {
            Set<Integer> things = new TreeSet<>();
            for (int position = 0; position < 5; position++) {
                things.add(Interleaved.thing(round, position, 5));
            }
            assertEquals(5, things.size(), "round " + round);
        }
    }

    @Test
    void roundsOfTheWarmUpDoNotCount() throws Exception {
        var outcome = Interleaved.take(List.of(turn("a", 9, 9, 1, 2, 3), turn("b", 8, 8, 4)), 2, 3);
        assertArrayEquals(new long[] {1, 2, 3}, outcome.ns()[0]);
        assertArrayEquals(new long[] {4, 4, 4}, outcome.ns()[1]);
    }

    @Test
    void samplesStayWithTheirTurnWhateverTheOrder() throws Exception {
        var effort = new Interleaved.Effort(0, 0, 0, 4, 4);
        var outcome = measure(effort, turn("a", 0, 1, 2, 3, 4), turn("b", 0, 10, 20, 30, 40));
        assertArrayEquals(new long[] {1, 2, 3, 4}, outcome.ns()[0]);
        assertArrayEquals(new long[] {10, 20, 30, 40}, outcome.ns()[1]);
        assertEquals(10, outcome.speed(0, 1), 1e-12);
    }

    @Test
    void countingBeginsWhenNothingGetsFasterAnyMore() throws Exception {
        var effort = new Interleaved.Effort(0, 1_000_000, 0, 3, 3);
        var outcome =
                measure(
                        effort,
                        turn("a", 900, 800, 700, 600, 500, 400, 300, 200, 100),
                        turn("b", 9));
        assertArrayEquals(new long[] {100, 100, 100}, outcome.ns()[0]);
    }

    @Test
    void warmUpEndsInAnyCase() throws Exception {
        var effort = new Interleaved.Effort(0, 5_000, 0, 3, 3);
        long[] everFaster = new long[50];
        for (int i = 0; i < everFaster.length; i++) {
            everFaster[i] = 5_000 / (i + 1);
        }
        measure(effort, turn("a", everFaster));
        assertEquals(1 + 3, order.size());
    }

    @Test
    void asManyRoundsAsFitWithinTheLimits() throws Exception {
        var effort = new Interleaved.Effort(0, 0, 1_000, 3, 20);
        assertEquals(10, measure(effort, turn("a", 60), turn("b", 40)).rounds());
        assertEquals(3, measure(effort, turn("a", 900)).rounds());
        assertEquals(20, measure(effort, turn("a", 1)).rounds());
        assertTrue(
                Interleaved.Effort.of(true).maxRounds() < Interleaved.Effort.of(false).minRounds());
    }
}
