package dev.weft.gemm.code;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

class ProcessorTest {

    @Test
    void featuresAreReadAsLinuxWritesThem() {
        Processor xeon =
                Processor.of(
                        "amd64",
                        "model name\t: X\nflags\t\t: fpu f16c fma avx2 avx512f\nbugs\t:\n");
        assertEquals(List.of("avx512", "avx2"), xeon.kinds());
        assertEquals(Optional.of("amx_bf16"), xeon.lacks(List.of("avx2", "amx_bf16")));
        assertEquals(Optional.empty(), xeon.lacks(List.of("avx2", "fma")));
        Processor neoverse = Processor.of("aarch64", "processor\t: 0\nFeatures\t: fp asimd\n");
        assertEquals(Set.of("fp", "asimd"), neoverse.features());
        assertEquals(List.of("neon"), neoverse.kinds());
        assertEquals(Optional.of("avx2, it is aarch64"), neoverse.lacks(List.of("avx2")));
    }

    @Test
    void aSystemThatTellsNothingHasNoFeatures() {
        assertEquals(Set.of(), Processor.of("amd64", "").features());
        assertEquals(List.of(), Processor.of("amd64", "").kinds());
        assertEquals(List.of(), Processor.of("riscv64", "").kinds());
    }
}
