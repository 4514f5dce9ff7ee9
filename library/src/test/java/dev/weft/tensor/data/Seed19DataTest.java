package dev.weft.tensor.data;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class Seed19DataTest {

    @Test
    void valuesAreOneToFourEquallyOften() {
        int count = 400_000;
        int[] seen = new int[5];
        for (int i = 0; i < count; i++) {
            float value = new Seed19Data(0).value(i);
            assertEquals(value, (int) value);
            seen[(int) value]++;
        }
        assertEquals(0, seen[0]);
        for (int value = 1; value <= 4; value++) {
            assertEquals(count / 4.0, seen[value], 5 * Math.sqrt(count * 0.1875), "of " + value);
        }
    }

    @Test
    void valuesArePinned() {
        float[] first = new float[12];
        for (int i = 0; i < first.length; i++) {
            first[i] = new Seed19Data(i / 6).value(i % 6);
        }
        assertArrayEquals(new float[] {4, 2, 2, 1, 3, 1, 3, 3, 1, 3, 4, 3}, first);
    }
}
