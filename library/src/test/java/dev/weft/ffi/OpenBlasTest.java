package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

class OpenBlasTest {

    private static void assumeInstalled() {
        assumeTrue(
                OpenBlas.unavailable().isEmpty(),
                () -> "no OpenBLAS: " + OpenBlas.unavailable().orElseThrow());
    }

    @Test
    void tellsItsVersionAndItsKernels() {
        assumeInstalled();
        assertTrue(
                OpenBlas.describe().matches("OpenBLAS \\d+\\.\\d+\\S* \\(\\w+ kernels\\)"),
                OpenBlas.describe());
    }

    @Test
    void multipliesRowMajorMatricesWithPitchesAndOverwritesC() {
        assumeInstalled();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment a = arena.allocateFrom(JAVA_FLOAT, 1, 2, 3, -1, 4, 5, 6, -1);
            MemorySegment b = arena.allocateFrom(JAVA_FLOAT, 1, 2, -1, 3, 4, -1, 5, 6, -1);
            float nan = Float.NaN;
            MemorySegment c = arena.allocateFrom(JAVA_FLOAT, nan, nan, 7, 8, nan, nan, 9, 10);
            OpenBlas.sgemm(false, 2, 2, 3, a.address(), 4, b.address(), 3, c.address(), 4);
            assertArrayEquals(new float[] {22, 28, 7, 8, 49, 64, 9, 10}, c.toArray(JAVA_FLOAT), 0f);
        }
    }

    @Test
    void kernelsAreChosenByTheFeaturesOfTheCpu() {
        Set<String> haswell = Set.of("fpu", "avx", "avx2", "fma");
        Set<String> firstAvx512 = Set.of("fpu", "avx2", "fma", "avx512f", "avx512cd");
        Set<String> skylake =
                Set.of("avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd");
        assertEquals(Optional.empty(), OpenBlas.coreType(Set.of("sse4_2", "avx")));
        assertEquals(Optional.of("HASWELL"), OpenBlas.coreType(haswell));
        assertEquals(Optional.of("HASWELL"), OpenBlas.coreType(firstAvx512));
        assertEquals(Optional.of("SKYLAKEX"), OpenBlas.coreType(skylake));
    }
}
