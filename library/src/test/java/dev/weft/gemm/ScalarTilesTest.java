package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class ScalarTilesTest extends GemmContract {

    @Override
    Gemm gemm() {
        return new TiledGemm(new ScalarTiles());
    }

    @Override
    int panelCols() {
        return 4;
    }

    @Override
    int blockDepth() {
        return new ScalarTiles().depth();
    }

    @Test
    void isCalledScalar() {
        assertEquals("scalar", gemm().name());
    }
}
