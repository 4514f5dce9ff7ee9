package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.gemm.code.Bf16Tiles;
import dev.weft.gemm.code.Tiles;
import java.util.List;
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
        for (Tiles tiles : List.of(new VectorTiles(), new Bf16Tiles())) {
            Blocking blocking = Blocking.of(tiles);
            assertTrue(blocking.rows() >= tiles.rows(), tiles.name() + ": " + blocking);
            assertTrue(blocking.cols() >= 1, blocking.toString());
            assertEquals(tiles.depth(), blocking.depth());
        }
    }
}
