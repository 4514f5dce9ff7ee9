package dev.weft.tune;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class QuantilesTest {

    @Test
    void medianAndSpread() {
        double[] values = {5, 1, 4, 2, 3};
        assertEquals(3, Quantiles.median(values));
        assertEquals(2, Quantiles.spread(values));
        assertArrayEquals(new double[] {5, 1, 4, 2, 3}, values);
        assertEquals(2.5, Quantiles.median(1, 4, 2, 3));
        assertEquals(7, Quantiles.median(7));
        assertEquals(0, Quantiles.spread(7));
    }
}
