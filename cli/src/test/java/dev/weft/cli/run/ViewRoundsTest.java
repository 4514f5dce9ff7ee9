package dev.weft.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class ViewRoundsTest {

    @Test
    void theCallThatIsShownIsTheOneNearestToTheMedian() {
        assertEquals(0, ViewRounds.nearestToMedian(new long[] {7}, 16));
        assertEquals(1, ViewRounds.nearestToMedian(new long[] {900, 110, 100, 115, 104}, 16));
        assertEquals(3, ViewRounds.nearestToMedian(new long[] {1, 2, 100, 50, 99}, 16));
    }

    /** The median of 0 to 99 is 49.5, and what the call of 84 did is the nearest that is kept. */
    @Test
    void ofManyRoundsOneOfTheLatestIsShown() {
        assertEquals(84, ViewRounds.nearestToMedian(LongStream.range(0, 100).toArray(), 16));
    }
}
