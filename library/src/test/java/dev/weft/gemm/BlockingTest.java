package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class BlockingTest {

    @Test
    void readsSizesAsTheKernelWritesThem() {
        assertEquals(2048 * 1024, Blocking.bytes("2048K"));
        assertEquals(512 * 1024, Blocking.bytes(""), "an empty answer counts as unknown");
        assertEquals(512 * 1024, Blocking.bytes("huge"));
    }

    @Test
    void everyTileFits() {
        for (int tileRows : new int[] {1, 4, 12, 1000}) {
            Blocking blocking = Blocking.of(tileRows);
            assertTrue(blocking.rows() >= tileRows, tileRows + ": " + blocking);
            assertTrue(blocking.cols() >= 1, blocking.toString());
        }
    }
}
