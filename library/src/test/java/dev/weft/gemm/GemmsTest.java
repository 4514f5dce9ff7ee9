package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.gemm.code.TileCode;
import org.junit.jupiter.api.Test;

class GemmsTest {

    @Test
    void autoIsMachineCode() {
        assumeTrue(
                Gemms.nativeUnavailable().isEmpty(), () -> Gemms.nativeUnavailable().orElseThrow());
        assertEquals(TileCode.forThisMachine().name(), Gemms.auto().name());
        assertEquals(Gemms.auto().name(), Gemms.byName("native").name());
    }

    @Test
    void enginesGoByName() {
        assertEquals("scalar", Gemms.byName("scalar").name());
        assertTrue(Gemms.byName("vector").name().startsWith("vector-"));
    }

    @Test
    void anUnknownNameIsRefusedWithTheKnownOnes() {
        String message =
                assertThrows(IllegalArgumentException.class, () -> Gemms.byName("blas"))
                        .getMessage();
        assertEquals(
                "unknown engine 'blas': expected auto, native, vector, scalar or openblas",
                message);
    }
}
