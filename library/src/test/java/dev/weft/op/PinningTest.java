package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class PinningTest {

    @Test
    void ranksTakeCoresInOrder() {
        int[] cores = {2, 3, 5, 7, 11, 13};
        assertEquals(2, Pinning.of(cores, 0, 3, 2).coreOf(0));
        assertEquals(3, Pinning.of(cores, 0, 3, 2).coreOf(1));
        assertEquals(11, Pinning.of(cores, 2, 3, 2).coreOf(0));
        assertEquals(13, Pinning.of(cores, 2, 3, 2).coreOf(1));
    }

    @Test
    void moreOrFewerWorkersThanCoresAreLeftToTheSystem() {
        int[] cores = {0, 1, 2};
        assertEquals(-1, Pinning.of(cores, 0, 2, 2).coreOf(0));
        assertEquals(-1, Pinning.of(cores, 0, 1, 2).coreOf(0));
        assertEquals(-1, Pinning.NONE.coreOf(7));
    }
}
