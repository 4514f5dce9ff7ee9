package dev.weft.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.weft.report.Samples;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.DoubleSupplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class GpuTurnsTest {

    private static List<Integer> order(int round, int count) {
        return IntStream.range(0, count).map(p -> GpuTurns.thing(round, p, count)).boxed().toList();
    }

    @Test
    void everyThingHasOneTurnInEveryRound() {
        for (int count = 1; count <= 6; count++) {
            for (int round = -7; round < 7; round++) {
                Set<Integer> things = new TreeSet<>(order(round, count));
                assertEquals(count, things.size(), "round " + round);
            }
        }
    }

    @Test
    void whoBeginsChangesAndEveryOtherRoundGoesBackwards() {
        assertEquals(List.of(0, 1, 2), order(0, 3));
        assertEquals(List.of(0, 2, 1), order(1, 3));
        assertEquals(List.of(1, 2, 0), order(2, 3));
        assertEquals(List.of(1, 0, 2), order(3, 3));
        assertEquals(List.of(2, 1, 0), order(-1, 3));
    }

    @Test
    void roundsOfTheWarmUpDoNotCount() {
        Map<String, DoubleSupplier> turns = new LinkedHashMap<>();
        List<String> taken = new ArrayList<>();
        turns.put("x", () -> take(taken, "x"));
        turns.put("y", () -> take(taken, "y"));
        Map<String, Samples> times = GpuTurns.take(turns, 2, 3);
        assertEquals(10, taken.size());
        assertEquals(List.of("x", "y"), List.copyOf(times.keySet()));
        assertEquals(3, times.get("x").us().size());
        assertEquals(
                Set.of(5.0, 6.0, 7.0, 8.0, 9.0, 10.0),
                Set.copyOf(
                        IntStream.range(0, 3)
                                .mapToObj(i -> i)
                                .flatMap(i -> times.values().stream().map(t -> t.us().get(i)))
                                .toList()));
    }

    /** Takes as long as turns were taken before. */
    private static double take(List<String> taken, String who) {
        taken.add(who);
        return taken.size();
    }
}
