package dev.weft.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class WaitTimeTest {

    @Test
    void timeThatWasSleptThroughDoesNotCount() {
        long start = Long.MAX_VALUE - 5;
        assertEquals(20_000_000, WaitTime.counted(start, start + 20_000_000), "also at the wrap");
        long hour = Duration.ofHours(1).toNanos();
        assertTrue(WaitTime.counted(start, start + hour) < Duration.ofSeconds(1).toNanos());
    }

    @Test
    void theLongestDeadlinesAreForEver() {
        assertEquals(3_000_000_000L, WaitTime.nanoseconds(Duration.ofSeconds(3)));
        long forever = WaitTime.nanoseconds(Duration.ofSeconds(Long.MAX_VALUE));
        assertTrue(forever + forever > 0, "a sum of two still fits");
        assertTrue(forever > Duration.ofDays(24_999).toNanos());
    }
}
