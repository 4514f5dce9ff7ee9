package dev.weft.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Times are worked out by hand: with n in service each proceeds at min(1, capacity / n). */
class StationTest {

    private final Events events = new Events();
    private final Map<String, Double> ends = new TreeMap<>();

    @Test
    void oneAloneTakesItsOwnTime() {
        Station station = new Station(events, 1);
        arrives(station, "a", 3, 10);
        assertEnds(Map.of("a", 13.0));
        assertEquals(10, station.leastNs());
    }

    @Test
    void equalsTakeTwiceAsLongTogether() {
        Station station = new Station(events, 1);
        arrives(station, "a", 0, 10);
        arrives(station, "b", 0, 10);
        assertEnds(Map.of("a", 20.0, "b", 20.0));
        assertEquals(20, station.leastNs());
    }

    /** Both at half rate until 20, when a has its 10; b has 20 left and is alone. */
    @Test
    void theLongerOneIsAloneAtLast() {
        Station station = new Station(events, 1);
        arrives(station, "a", 0, 10);
        arrives(station, "b", 0, 30);
        assertEnds(Map.of("a", 20.0, "b", 40.0));
    }

    /** a has 5 left when b comes, which take it 10; then b has 5 of its 10 left. */
    @Test
    void whoComesInTheMiddleSlowsTheOther() {
        Station station = new Station(events, 1);
        arrives(station, "a", 0, 10);
        arrives(station, "b", 5, 10);
        assertEnds(Map.of("a", 15.0, "b", 20.0));
    }

    /** From 4 to 7 three share: each gets 1. Before that a got 3 + 0.5, b 0.5. */
    @Test
    void eachArrivalChangesTheRate() {
        Station station = new Station(events, 1);
        arrives(station, "a", 0, 4.5);
        arrives(station, "b", 3, 10);
        arrives(station, "c", 4, 1);
        // a and c end at 7; b has got 1.5 by then and is alone.
        assertEnds(Map.of("a", 7.0, "b", 15.5, "c", 7.0));
        assertEquals(15.5, station.leastNs());
    }

    @Test
    void capacityForAllMeansNobodyWaits() {
        Station station = new Station(events, 2);
        arrives(station, "a", 0, 10);
        arrives(station, "b", 4, 10);
        assertEnds(Map.of("a", 10.0, "b", 14.0));
        assertEquals(10, station.leastNs());
    }

    /** Three on two cores: each at 2/3, 15 for 10. */
    @Test
    void capacityIsSharedOnlyWhereItIsShort() {
        Station station = new Station(events, 2);
        arrives(station, "a", 0, 10);
        arrives(station, "b", 0, 10);
        arrives(station, "c", 0, 10);
        assertEnds(Map.of("a", 15.0, "b", 15.0, "c", 15.0));
    }

    /** From 0 to 6 three at 2/3 get 4 each; then a and b, with 6 and 8 left, have a core each. */
    @Test
    void whoLeavesMakesRoom() {
        Station station = new Station(events, 2);
        arrives(station, "a", 0, 10);
        arrives(station, "b", 0, 12);
        arrives(station, "c", 0, 4);
        assertEnds(Map.of("a", 12.0, "b", 14.0, "c", 6.0));
    }

    @Test
    void lessThanOneCoreIsSlowerForOneAlone() {
        Station station = new Station(events, 0.5);
        arrives(station, "a", 0, 10);
        assertEnds(Map.of("a", 20.0));
        assertEquals(20, station.leastNs());
    }

    @Test
    void idleTimeIsNotSavedUp() {
        Station station = new Station(events, 1);
        arrives(station, "a", 0, 10);
        arrives(station, "b", 100, 10);
        arrives(station, "c", 100, 10);
        assertEnds(Map.of("a", 10.0, "b", 120.0, "c", 120.0));
    }

    @Test
    void noWorkIsDoneAtOnceWhoeverIsThere() {
        Station station = new Station(events, 1);
        arrives(station, "a", 0, 10);
        arrives(station, "b", 5, 0);
        assertEnds(Map.of("a", 10.0, "b", 5.0));
    }

    /** Each is alone for its 10: who has been served may come again at once. */
    @Test
    void whoIsServedMayComeAgain() {
        Station station = new Station(events, 1);
        events.add(
                0,
                start ->
                        station.serve(
                                () -> {
                                    end("first");
                                    station.serve(() -> end("second"), 10);
                                },
                                10),
                0);
        assertEnds(Map.of("first", 10.0, "second", 20.0));
    }

    private void arrives(Station station, String name, double atNs, double workNs) {
        events.add(atNs, ignored -> station.serve(() -> end(name), workNs), 0);
    }

    private void end(String name) {
        ends.put(name, events.now());
    }

    private void assertEnds(Map<String, Double> expected) {
        events.run();
        assertEquals(expected.keySet(), ends.keySet());
        expected.forEach((name, end) -> assertEquals(end, ends.get(name), 1e-9, name));
    }
}
