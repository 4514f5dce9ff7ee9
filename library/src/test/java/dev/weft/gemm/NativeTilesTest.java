package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.gemm.code.TileCode;
import dev.weft.gemm.code.Tiles;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

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

    @Test
    void weightsOf16BitsStay16Bits() {
        int n = 3 * panelCols();
        try (Arena arena = Arena.ofConfined()) {
            for (DType type : DType.UNSCALED) {
                Matrix b = Matrix.allocate(arena, type, 100, n);
                PackedB packed = gemm().pack(b, false, arena);
                assertEquals(100L * n * type.bytes(), packed.bytes());
                assertEquals(type, packed.type());
                assertEquals(packed.bytes(), gemm().packedBytes(100, n, type));
                Matrix other = Matrix.allocate(arena, DType.E4M3, 100, n);
                assertThrows(IllegalArgumentException.class, () -> packed.fill(other, false, 0, 1));
            }
            // One panel is widened once instead.
            Matrix narrow = Matrix.allocate(arena, DType.BF16, 100, panelCols());
            assertEquals(DType.FP32, gemm().pack(narrow, false, arena).type());
        }
    }
}
