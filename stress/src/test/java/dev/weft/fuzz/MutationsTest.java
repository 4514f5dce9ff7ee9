package dev.weft.fuzz;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class MutationsTest {

    private static final byte[] JSON =
            "{\"a\": [1, 2.5], \"b\": {\"c\": true}, \"d\": \"text\"}"
                    .getBytes(StandardCharsets.UTF_8);
    private static final List<byte[]> CORPUS = List.of(JSON, new byte[64], new byte[0]);

    @Test
    void theSameSeedGivesTheSameInputs() {
        Mutations one = new Mutations(new SplittableRandom(7));
        Mutations other = new Mutations(new SplittableRandom(7));
        for (int i = 0; i < 1000; i++) {
            assertArrayEquals(one.next(CORPUS), other.next(CORPUS));
        }
    }

    @Test
    void inputsDifferAndStayWithinBounds() {
        Mutations mutations = new Mutations(new SplittableRandom(8));
        Set<Integer> different = new HashSet<>();
        boolean deep = false;
        boolean huge = false;
        for (int i = 0; i < 5000; i++) {
            byte[] input = mutations.next(CORPUS);
            assertTrue(input.length <= Mutations.MAX_BYTES);
            different.add(Arrays.hashCode(input));
            String text = new String(input, StandardCharsets.ISO_8859_1);
            deep |= text.contains("[".repeat(1000));
            huge |= text.contains("9223372036854775808");
        }
        assertTrue(different.size() > 3000, different.size() + " different inputs");
        assertTrue(deep, "nests deeply");
        assertTrue(huge, "overflows 64 bits");
    }

    @Test
    void seedsStayAsTheyAre() {
        byte[] before = JSON.clone();
        Mutations mutations = new Mutations(new SplittableRandom(9));
        for (int i = 0; i < 1000; i++) {
            mutations.next(CORPUS);
        }
        assertArrayEquals(before, JSON);
        assertEquals(0, CORPUS.get(1)[0]);
    }
}
