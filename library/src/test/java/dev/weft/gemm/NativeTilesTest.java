package dev.weft.gemm;

import dev.weft.gemm.code.TileCode;
import dev.weft.gemm.code.Tiles;

/** Machine code for this machine. */
class NativeTilesTest extends TiledGemmTest {

    private static final Tiles CODE = TileCode.forThisMachine();

    @Override
    Tiles tiles() {
        return CODE;
    }
}
