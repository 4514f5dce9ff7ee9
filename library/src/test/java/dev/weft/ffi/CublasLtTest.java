package dev.weft.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.Test;

class CublasLtTest {

    @Test
    void withoutItEveryUseTellsWhatIsMissingAndHowToGetIt() {
        assumeTrue(CublasLt.unavailable().isPresent(), "this machine has cublasLt");
        String why = CublasLt.unavailable().orElseThrow();
        assertTrue(why.contains("libcublasLt.so.13"), why);
        assertTrue(why.contains("CUDA toolkit"), why);
        assertTrue(why.contains("-Dweft.cuda.cublaslt=PATH or WEFT_CUBLASLT=PATH"), why);
        var e = assertThrows(IllegalStateException.class, CublasLt::version);
        assertEquals("libcublasLt: " + why, e.getMessage());
    }

    @Test
    void shapesThatCannotBeAreRefused() {
        refused("expected m, n and k of at least 1", 0, 4, 8, 1);
        refused("pitches A 7, B 8, C 8, workspace 0 bytes: expected pitches", 4, 7, 8, 1);
        refused("expected pitches of at least a row", 4, 8, 7, 1);
        refused("0 candidates: expected at least 1", 4, 8, 8, 0);
    }

    private static void refused(String message, long m, long aPitch, long bPitch, int candidates) {
        var e =
                assertThrows(
                        IllegalArgumentException.class,
                        () ->
                                CublasLt.prepare(
                                        true,
                                        true,
                                        m,
                                        8,
                                        8,
                                        aPitch,
                                        false,
                                        bPitch,
                                        8,
                                        0,
                                        candidates));
        assertTrue(e.getMessage().contains(message), e.getMessage());
    }
}
