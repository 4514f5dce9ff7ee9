package dev.weft.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class ProcessorTest {

    @Test
    void featuresAreReadAsLinuxWritesThem() {
        Processor xeon =
                Processor.of(
                        "amd64",
                        "model name\t: X\nflags\t\t: fpu f16c fma avx2 avx512f\nbugs\t:\n");
        assertEquals("avx512", xeon.kind(null));
        assertEquals("avx2", xeon.kind("avx2"));
        refused(
                "property weft.gemm.code is 'neon': this processor executes avx512, avx2",
                () -> xeon.kind("neon"));
        assertEquals(Optional.of("amx_bf16"), xeon.lacks(List.of("avx2", "amx_bf16")));
        assertEquals(Optional.empty(), xeon.lacks(List.of("avx2", "fma")));
        Processor neoverse = Processor.of("aarch64", "processor\t: 0\nFeatures\t: fp asimd\n");
        assertEquals(Set.of("fp", "asimd"), neoverse.features());
        assertEquals("neon", neoverse.kind(null));
        assertEquals(Optional.of("avx2, it is aarch64"), neoverse.lacks(List.of("avx2")));
    }

    @Test
    void aSystemThatTellsNothingHasNoFeatures() {
        assertEquals(Set.of(), Processor.of("amd64", "").features());
        String all = "Weft writes machine code for aarch64 and for x86_64 with AVX2, not for ";
        refused(all + "amd64 without", () -> Processor.of("amd64", "").kind(null));
        refused(all + "riscv64", () -> Processor.of("riscv64", "").kind("avx2"));
    }

    private static void refused(String message, Executable call) {
        var e = assertThrows(IllegalStateException.class, call);
        assertEquals(message, e.getMessage());
    }
}
