package dev.weft.model;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StateStoreTest {

    /** One, two and three longs per state. */
    @ParameterizedTest
    @ValueSource(ints = {3, 12, 25})
    void keepsWhatIsNewAndGivesItBack(int threads) {
        int[] largest = IntStream.range(0, threads).map(t -> t % 3 == 0 ? 1 : 100).toArray();
        StateStore store = new StateStore(largest);
        SplittableRandom random = new SplittableRandom(threads);
        Set<List<Integer>> seen = new HashSet<>();
        List<int[]> kept = new ArrayList<>();
        for (int i = 0; i < 150_000; i++) {
            int[] state = new int[threads];
            for (int t = 0; t < threads; t++) {
                state[t] = random.nextInt(largest[t] + 1);
            }
            boolean isNew = seen.add(IntStream.of(state).boxed().toList());
            assertEquals(isNew, store.add(state, kept.size() - 1));
            if (isNew) {
                kept.add(state);
            }
        }
        assertEquals(kept.size(), store.size());
        int[] state = new int[threads];
        for (int i = 0; i < kept.size(); i++) {
            store.load(i, state);
            assertArrayEquals(kept.get(i), state);
            assertEquals(i - 1, store.parent(i));
        }
    }
}
