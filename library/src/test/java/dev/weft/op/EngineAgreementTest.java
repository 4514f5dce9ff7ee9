package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Ranks;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import org.junit.jupiter.api.Test;

/** Ranks on unlike machines end up with engines of the same bits, or learn that they do not. */
class EngineAgreementTest {

    private static final Gemm SCALAR = Gemms.byName("scalar");

    /** The scalar engine, as if it had bits of its own. */
    private static final Gemm OWN =
            new GemmProxy(SCALAR, Gemm.Bits.OWN, row -> {}, (row, rows) -> {});

    private static Gemm agreed(Fabric fabric, boolean ownEverywhere, boolean free) {
        Gemm own = ownEverywhere || fabric.rank() == 1 ? OWN : SCALAR;
        return AllGatherMatmulBuilder.agreedEngine(fabric, own, free);
    }

    @Test
    void whatEveryRankHasIsTaken() {
        Ranks.run(3, fabric -> assertEquals(OWN, agreed(fabric, true, true)));
    }

    @Test
    void whatOneRankLacksNobodyTakes() {
        Ranks.run(
                3, fabric -> assertEquals(Gemm.Bits.PORTABLE, agreed(fabric, false, true).bits()));
    }

    @Test
    void enginesOfUnlikeBitsByNameAreRefusedOnEveryRank() {
        Ranks.run(
                3,
                fabric -> {
                    var refused =
                            assertThrows(
                                    IllegalArgumentException.class,
                                    () -> agreed(fabric, false, false));
                    assertTrue(
                            refused.getMessage()
                                    .endsWith(
                                            "the engine's bits (0 the same on every machine, 1"
                                                    + " those of AMX, 2 any) is 0 on rank 0 and 1"
                                                    + " on rank 1"),
                            refused.getMessage());
                });
    }
}
