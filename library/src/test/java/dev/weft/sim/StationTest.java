package dev.weft.sim;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Times are worked out by hand: with n in service each proceeds at min(1, capacity / n). */
class StationTest {

    private final Events events = new Events();

    static Stream<Arguments> arrivals() {
        return Stream.of(
                arguments("one alone takes its own time", 1, List.of(new Job(3, 10, 13)), 10),
                arguments(
                        "equals take twice as long together",
                        1,
                        List.of(new Job(0, 10, 20), new Job(0, 10, 20)),
                        20),
                // Both at half rate until 20, when the first has its 10; the other has 20 left.
                arguments(
                        "the longer one is alone at last",
                        1,
                        List.of(new Job(0, 10, 20), new Job(0, 30, 40)),
                        40),
                // The first has 5 left when the other comes, which take it 10.
                arguments(
                        "who comes in the middle slows the other",
                        1,
                        List.of(new Job(0, 10, 15), new Job(5, 10, 20)),
                        20),
                // From 4 to 7 three share: each gets 1. Before that the first got 3 + 0.5, the
                // second 0.5, which has got 1.5 by 7 and is alone.
                arguments(
                        "each arrival changes the rate",
                        1,
                        List.of(new Job(0, 4.5, 7), new Job(3, 10, 15.5), new Job(4, 1, 7)),
                        15.5),
                arguments(
                        "capacity for all means nobody waits",
                        2,
                        List.of(new Job(0, 10, 10), new Job(4, 10, 14)),
                        10),
                // Three on two cores: each at 2/3, 15 for 10.
                arguments(
                        "capacity is shared only where it is short",
                        2,
                        List.of(new Job(0, 10, 15), new Job(0, 10, 15), new Job(0, 10, 15)),
                        15),
                // From 0 to 6 three at 2/3 get 4 each; then two, with 6 and 8 left, have a core
                // each.
                arguments(
                        "who leaves makes room",
                        2,
                        List.of(new Job(0, 10, 12), new Job(0, 12, 14), new Job(0, 4, 6)),
                        13),
                arguments(
                        "less than one core is slower for one alone",
                        0.5,
                        List.of(new Job(0, 10, 20)),
                        20),
                arguments(
                        "idle time is not saved up",
                        1,
                        List.of(new Job(0, 10, 10), new Job(100, 10, 120), new Job(100, 10, 120)),
                        30),
                arguments(
                        "no work is done at once, whoever is there",
                        1,
                        List.of(new Job(0, 10, 10), new Job(5, 0, 5)),
                        10));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("arrivals")
    void whoArrivesIsServed(String name, double capacity, List<Job> jobs, double leastNs) {
        Station station = new Station(events, capacity);
        double[] ends = new double[jobs.size()];
        for (int i = 0; i < ends.length; i++) {
            int job = i;
            double workNs = jobs.get(i).workNs();
            events.add(
                    jobs.get(i).arrivesNs(),
                    ignored -> station.serve(() -> ends[job] = events.now(), workNs),
                    0);
        }
        events.run();
        assertArrayEquals(jobs.stream().mapToDouble(Job::endsNs).toArray(), ends, 1e-9, name);
        assertEquals(leastNs, station.leastNs(), 1e-9, name);
    }

    private record Job(double arrivesNs, double workNs, double endsNs) {}

    /** Each is alone for its 10: who has been served may come again at once. */
    @Test
    void whoIsServedMayComeAgain() {
        Station station = new Station(events, 1);
        List<Double> ends = new ArrayList<>();
        Station.Customer again =
                () -> {
                    ends.add(events.now());
                    station.serve(() -> ends.add(events.now()), 10);
                };
        events.add(0, start -> station.serve(again, 10), 0);
        events.run();
        assertEquals(List.of(10.0, 20.0), ends);
    }
}
