package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.gemm.code.TileCode;
import dev.weft.gemm.code.Tiles;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The same on AMX, where the processor has it. */
class AmxGemmTest extends Bf16GemmTest {

    private static Tiles code;

    @BeforeAll
    static void needsAmx() {
        assumeTrue(Gemms.amxUnavailable().isEmpty(), () -> Gemms.amxUnavailable().orElseThrow());
        code = TileCode.amx();
    }

    @Override
    Tiles tiles() {
        return code;
    }

    @Test
    void isCalledAmx() {
        assertEquals("amx", gemm().name());
    }
}
