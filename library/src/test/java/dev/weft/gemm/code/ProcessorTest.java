package dev.weft.gemm.code;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Set;
import org.junit.jupiter.api.Test;

class ProcessorTest {

    @Test
    void featuresAreReadAsLinuxWritesThem() {
        Processor xeon =
                Processor.of(
                        "amd64",
                        "model name\t: X\nflags\t\t: fpu f16c fma avx2 avx512f\nbugs\t:\n");
        assertTrue(xeon.hasAvx2());
        assertTrue(xeon.hasAvx512());
        Processor neoverse = Processor.of("aarch64", "processor\t: 0\nFeatures\t: fp asimd\n");
        assertEquals(Set.of("fp", "asimd"), neoverse.features());
        assertFalse(neoverse.hasAvx2());
    }

    @Test
    void aSystemThatTellsNothingHasNoFeatures() {
        assertEquals(Set.of(), Processor.of("amd64", "").features());
    }
}
