package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.gemm.code.TileCode;
import dev.weft.tensor.DType;
import org.junit.jupiter.api.Test;

class GemmsTest {

    @Test
    void autoIsMachineCode() {
        assumeTrue(Gemms.nativeUnavailable().isEmpty(), Gemms.nativeUnavailable()::toString);
        String name = TileCode.forThisMachine().name();
        assertEquals(name, Gemms.portable().name());
        assertEquals(name, Gemms.byName("native").name());
        assertEquals(name, Gemms.auto(DType.FP16, DType.FP16).name());
        assertEquals(name, Gemms.auto(DType.BF16, DType.FP32).name());
    }

    /** Where the processor has it; elsewhere its name is refused with the reason. */
    @Test
    void bf16IsLeftToAmx() {
        Gemm auto = Gemms.auto(DType.BF16, DType.BF16);
        if (Gemms.amxUnavailable().isEmpty()) {
            assertEquals("amx", auto.name());
            assertEquals(Gemm.Bits.OWN, auto.bits());
            assertEquals("amx", Gemms.withBitsOf("amx").name());
            assertThrows(IllegalArgumentException.class, () -> Gemms.byName("amx"));
        } else {
            assertEquals(Gemms.portable().name(), auto.name());
            String reason =
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> Gemms.byName("amx", DType.BF16, DType.BF16))
                            .getMessage();
            assertEquals("engine 'amx': " + Gemms.amxUnavailable().orElseThrow(), reason);
        }
        assertEquals(Gemm.Bits.PORTABLE, Gemms.byName("portable", DType.BF16, DType.BF16).bits());
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
                "unknown engine 'blas': expected one of auto, portable, native, amx, vector,"
                        + " scalar, openblas",
                message);
    }
}
