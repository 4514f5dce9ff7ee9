package dev.weft.cuda.kernel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What is decided about a kernel before it is loaded. */
@Isolated("sets a property of the process")
class GatedKernelTest {

    @Test
    void pairsPayWhereTheyWasteFewRows() {
        assertTrue(GatedKernel.pairsPay(Shards.even(8192, 8), 128));
        assertTrue(GatedKernel.pairsPay(Shards.even(4096, 1), 128));
        // 33 tiles become 17 pairs: one tile in 33 is for nothing.
        assertTrue(GatedKernel.pairsPay(Shards.even(33 * 128, 1), 128));
        // 19 tiles become 10 pairs, which is one in 19.
        assertFalse(GatedKernel.pairsPay(Shards.even(19 * 128, 1), 128));
        assertFalse(GatedKernel.pairsPay(Shards.even(8 * 128, 8), 128));
        assertFalse(GatedKernel.pairsPay(Shards.of(1), 128));
    }

    @Test
    void ranksWithoutRowsDoNotCount() {
        assertTrue(GatedKernel.pairsPay(Shards.of(0, 4096, 0), 128));
        assertFalse(GatedKernel.pairsPay(Shards.of(0, 100, 0), 128));
        assertTrue(GatedKernel.pairsPay(Shards.of(0, 0), 128));
    }

    @Test
    void theSwitchesFollowTheTypes() {
        assertEquals(
                new KernelVariants.Operands(true, true, false),
                GatedKernel.operands(DType.BF16, DType.FP32, false));
        assertEquals(
                new KernelVariants.Operands(false, false, true),
                GatedKernel.operands(DType.FP16, DType.FP16, true));
    }

    @Test
    void aTileShapeThatIsNoneIsRefusedWithItsNumbers() {
        IllegalArgumentException refusal =
                assertThrows(
                        IllegalArgumentException.class, () -> new TileShape(128, 128, 256, 132));
        assertTrue(
                refusal.getMessage().startsWith("tiles of 128 x 128 or 256 on 132 workers"),
                refusal.getMessage());
        assertThrows(IllegalArgumentException.class, () -> new TileShape(0, 128, 128, 1));
        assertThrows(IllegalArgumentException.class, () -> new TileShape(128, 128, 0, 1));
        assertThrows(IllegalArgumentException.class, () -> new TileShape(128, 128, 128, 0));
        assertEquals(27, new TileShape(128, 256, 128, 132).across(6657, 256));
    }

    @ParameterizedTest
    @CsvSource({"80, MMA", "86, MMA", "89, MMA", "90, HOPPER", "100, MMA", "103, MMA", "120, MMA"})
    void everyCardFrom80OnHasAKernel(int capability, KernelFamily kind) {
        assumeTrue(System.getProperty(KernelFamily.PROPERTY) == null, "a kernel is forced");
        assertEquals(kind, KernelFamily.of(capability));
    }

    /** Kernels that serve only some products cannot stand for the card's best. */
    @ParameterizedTest
    @ValueSource(strings = {"few_rows", "fp8", "HOPPER"})
    void onlyKernelsForAnyProductCanBeForced(String name) {
        assumeTrue(System.getProperty(KernelFamily.PROPERTY) == null, "a kernel is forced");
        System.setProperty(KernelFamily.PROPERTY, name);
        try {
            assertEquals(
                    "-Dweft.cuda.kernel=" + name + ": expected hopper, mma or simt",
                    assertThrows(IllegalArgumentException.class, () -> KernelFamily.of(90))
                            .getMessage());
        } finally {
            System.clearProperty(KernelFamily.PROPERTY);
        }
    }

    @Test
    void anOlderCardIsRefused() {
        assumeTrue(System.getProperty(KernelFamily.PROPERTY) == null, "a kernel is forced");
        assertEquals(
                "compute capability 7.5 for the kernel mma: expected 8.0 or later",
                assertThrows(IllegalStateException.class, () -> KernelFamily.of(75)).getMessage());
    }
}
