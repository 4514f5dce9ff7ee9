package dev.weft.stress;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Ranks and chunks that are late at random, calls without barriers, two operators at a time. */
class StragglersTest {

    private static void check(int ranks, int calls, long delayMicros, long seed) {
        Case run =
                Case.parse(
                        "fault=delay every=true deadline=30000 ranks="
                                + ranks
                                + " calls="
                                + calls
                                + " delay="
                                + delayMicros
                                + " seed="
                                + seed);
        Ending ending = run.execute();
        assertEquals(List.of(), ending.problems(), run.words());
        assertEquals((long) ranks * calls, ending.tally().calls(), run.words());
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 3, 5})
    void everyResultIsRight(int ranks) {
        check(ranks, 240, 300, ranks);
    }

    @Test
    @Tag("long")
    void tenThousandCalls() {
        check(4, 10_000, 300, 1);
    }
}
