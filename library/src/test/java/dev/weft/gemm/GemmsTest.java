package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

class GemmsTest {

    @Test
    void autoTakesTheVectorEngineWhereItsModuleIsThere() {
        assertInstanceOf(VectorGemm.class, Gemms.auto());
        assertInstanceOf(VectorGemm.class, Gemms.byName("auto"));
    }

    @Test
    void enginesGoByName() {
        assertInstanceOf(ScalarGemm.class, Gemms.byName("scalar"));
        assertInstanceOf(VectorGemm.class, Gemms.byName("vector"));
    }

    @Test
    void anUnknownNameIsRefusedWithTheKnownOnes() {
        String message =
                assertThrows(IllegalArgumentException.class, () -> Gemms.byName("blas"))
                        .getMessage();
        assertEquals("unknown engine 'blas': expected auto, scalar, vector or openblas", message);
    }
}
