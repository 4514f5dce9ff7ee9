package dev.weft.tensor.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

class CounterHashTest {

    @Test
    void wordsAreTheSplitMix64Sequence() {
        assertEquals(0xE220A8397B1DCDAFL, CounterHash.word(0, 0));
        assertEquals(0x6E789E6AA1B965F4L, CounterHash.word(0, 1));
        assertEquals(0x06C45D188009454FL, CounterHash.word(0, 2));
    }

    @Test
    void seedsAndStreamsGiveDifferentKeys() {
        Set<Long> keys = new HashSet<>();
        for (long seed = -20; seed < 20; seed++) {
            for (long stream = -20; stream < 20; stream++) {
                keys.add(CounterHash.key(seed, stream));
            }
        }
        assertEquals(1600, keys.size());
    }

    @Test
    void everyBitIsSetAboutHalfTheTime() {
        int words = 100_000;
        int[] ones = new int[64];
        for (int i = 0; i < words; i++) {
            long word = CounterHash.word(CounterHash.key(1, 2), i);
            for (int bit = 0; bit < 64; bit++) {
                ones[bit] += (int) (word >>> bit & 1);
            }
        }
        for (int bit = 0; bit < 64; bit++) {
            // Five standard deviations of a fair coin.
            assertTrue(
                    Math.abs(ones[bit] - words / 2) < 5 * Math.sqrt(words) / 2,
                    "bit " + bit + " is set " + ones[bit] + " times of " + words);
        }
    }
}
