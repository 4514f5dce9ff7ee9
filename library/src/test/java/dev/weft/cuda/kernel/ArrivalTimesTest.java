package dev.weft.cuda.kernel;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ArrivalTimesTest {

    private static int[] line(int firstFlag, int count) {
        return IntStream.range(firstFlag, firstFlag + count).toArray();
    }

    @Test
    void aThreadWatchesOneLineInItsOrder() {
        int[] watched = ArrivalTimes.watched(List.of(line(10, 40), line(100, 2)));
        assertEquals(96, watched.length);
        for (int i = 0; i < 40; i++) {
            assertEquals(10 + i, watched[i / 16 * 32 + i % 16]);
        }
        assertEquals(100, watched[16]);
        assertEquals(101, watched[17]);
        assertEquals(54, IntStream.of(watched).filter(flag -> flag < 0).count());
    }
}
