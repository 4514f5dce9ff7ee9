package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class ScalarGemmTest extends GemmContract {

    @Override
    Gemm gemm() {
        return new ScalarGemm();
    }

    @Override
    int panelCols() {
        return 4;
    }

    @Override
    int blockDepth() {
        return 16;
    }

    @Test
    void isCalledScalar() {
        assertEquals("scalar", gemm().name());
    }
}
