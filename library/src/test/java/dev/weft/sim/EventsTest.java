package dev.weft.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class EventsTest {

    private final Events events = new Events();
    private final List<Integer> happened = new ArrayList<>();

    @Test
    void earlierThingsHappenFirst() {
        add(30, 3);
        add(10, 1);
        add(20, 2);
        events.run();
        assertEquals(List.of(1, 2, 3), happened);
        assertEquals(30, events.now());
        assertEquals(3, events.processed());
    }

    @Test
    void ofThingsAtOneTimeTheFirstAddedHappensFirst() {
        for (int i = 0; i < 200; i++) {
            add(5, i);
        }
        events.run();
        for (int i = 0; i < 200; i++) {
            assertEquals(i, happened.get(i));
        }
    }

    @Test
    void whatIsAddedToBeFirstComesBeforeAllElseOfItsTime() {
        add(10, 3);
        events.addFirst(10, happened::add, 1);
        add(10, 4);
        events.addFirst(10, happened::add, 2);
        add(9, 0);
        events.run();
        assertEquals(List.of(0, 1, 2, 3, 4), happened);
    }

    @Test
    void whatComesOfAThingHappensInItsTurn() {
        events.add(
                10,
                detail -> {
                    happened.add(detail);
                    add(events.now(), 3);
                    add(events.now() + 5, 5);
                    events.addFirst(events.now(), happened::add, 1);
                },
                0);
        add(10, 2);
        add(12, 4);
        events.run();
        assertEquals(List.of(0, 1, 2, 3, 4, 5), happened);
        assertEquals(15, events.now());
    }

    /** Removed while others are added, in numbers that make the heap grow several times. */
    @Test
    void neverGoesBackInTime() {
        Random random = new Random(7);
        double[] latest = new double[1];
        Events.Action[] again = new Events.Action[1];
        again[0] =
                left -> {
                    assertEquals(Math.max(latest[0], events.now()), events.now());
                    latest[0] = events.now();
                    if (left > 0) {
                        events.add(events.now() + random.nextInt(20), again[0], left - 1);
                    }
                };
        for (int i = 0; i < 1000; i++) {
            events.add(random.nextInt(100), again[0], 9);
        }
        events.run();
        assertEquals(10_000, events.processed());
    }

    private void add(double time, int number) {
        events.add(time, happened::add, number);
    }
}
