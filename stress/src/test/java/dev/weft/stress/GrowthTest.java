package dev.weft.stress;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.function.LongFunction;
import org.junit.jupiter.api.Test;

/** What counts as growth, and what does not. */
class GrowthTest {

    private static final long MIB = 1L << 20;

    private static List<String> leaks(int samples, LongFunction<Footprint> life) {
        Growth growth = new Growth();
        for (int i = 0; i < samples; i++) {
            growth.add(life.apply(i));
        }
        return growth.leaks();
    }

    @Test
    void memoryThatWandersIsNoLeak() {
        assertEquals(
                List.of(),
                leaks(
                        50,
                        i ->
                                new Footprint(
                                        (20 + i % 7) * MIB,
                                        (200 + i % 30) * MIB,
                                        30 + i % 5,
                                        12,
                                        1)));
    }

    @Test
    void warmingUpIsNoLeak() {
        assertEquals(
                List.of(),
                leaks(50, i -> new Footprint(10 * MIB, Math.min(i, 9) * 40 * MIB, 30, 12, 0)));
    }

    @Test
    void memoryThatKeepsGrowingIs() {
        assertEquals(
                List.of("resident memory: 325 MiB -> 625 MiB"),
                leaks(50, i -> new Footprint(10 * MIB, (180 + 10 * i) * MIB, 30, 12, 0)));
    }

    @Test
    void handlesThreadsAndFoldersAreCounted() {
        List<String> leaks =
                leaks(40, i -> new Footprint(10 * MIB, 100 * MIB, 30 + i, (int) (10 + i), i / 30));
        assertEquals(3, leaks.size(), leaks.toString());
        assertTrue(leaks.get(0).startsWith("file handles: "), leaks.toString());
        assertTrue(leaks.get(1).startsWith("threads: "), leaks.toString());
        assertEquals("folders in shared memory: 0 -> 1", leaks.get(2));
    }

    @Test
    void foldersOfOtherRunsComeAndGo() {
        assertEquals(
                List.of(),
                leaks(40, i -> new Footprint(MIB, MIB, 30, 12, i > 30 && i != 35 ? 2 : 0)));
    }

    @Test
    void tooFewSamplesTellNothing() {
        assertEquals(List.of(), leaks(5, i -> new Footprint(i << 32, i << 32, 100 * i, 1, 0)));
    }
}
