package dev.weft.gemm;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.gemm.code.TileCode;
import dev.weft.gemm.code.Tiles;
import org.junit.jupiter.api.BeforeAll;

/** Machine code for this machine, where there is some. */
class NativeTilesTest extends TiledGemmTest {

    private static Tiles code;

    @BeforeAll
    static void needsMachineCode() {
        assumeTrue(
                Gemms.nativeUnavailable().isEmpty(), () -> Gemms.nativeUnavailable().orElseThrow());
        code = TileCode.forThisMachine();
    }

    @Override
    Tiles tiles() {
        return code;
    }
}
