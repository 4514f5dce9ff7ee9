package dev.weft.bench.cpu;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class ProductCaseTest {

    @Test
    void threadCountsAreTwoPowersOfFourAndAllCores() {
        assertEquals(List.of(1), ProductCase.threadCounts(1));
        assertEquals(List.of(1, 2), ProductCase.threadCounts(2));
        assertEquals(List.of(1, 2, 4, 16), ProductCase.threadCounts(16));
        assertEquals(List.of(1, 2, 4, 6), ProductCase.threadCounts(6));
    }
}
