package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class GemmRefusalsTest {

    private static void assertRefused(Executable call, String... parts) {
        String message = assertThrows(IllegalArgumentException.class, call).getMessage();
        for (String part : parts) {
            assertTrue(message.contains(part), message);
        }
    }

    @Test
    void operandsThatDoNotFit() {
        for (Gemm gemm :
                new Gemm[] {new TiledGemm(new ScalarTiles()), new TiledGemm(new VectorTiles())}) {
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = Matrix.allocate(arena, DType.FP32, 4, 6);
                Matrix c = Matrix.allocate(arena, DType.FP32, 4, 5);
                PackedB b = gemm.pack(Matrix.allocate(arena, DType.FP32, 6, 5), false, arena);
                PackedB other = gemm.pack(Matrix.allocate(arena, DType.FP32, 7, 5), false, arena);
                Scratch scratch = gemm.scratch(7, 5, arena);
                assertRefused(
                        () -> gemm.multiply(a, 0, 4, other, c, 0, scratch),
                        "[4, 6] fp32",
                        "[7, 5]");
                assertRefused(
                        () -> gemm.multiply(a, 0, 4, b, a, 0, scratch), "[6, 5]", "[4, 6] fp32");
                assertRefused(() -> gemm.multiply(a, 1, 4, b, c, 0, scratch), "4 rows from row 1");
                assertRefused(() -> gemm.multiply(a, 0, 4, b, c, 1, scratch), "into row 1");
                assertRefused(() -> gemm.multiply(a, -1, 1, b, c, 0, scratch), "row -1");
                assertRefused(() -> gemm.multiply(a, 0, -1, b, c, 0, scratch), "-1 rows");
                assertRefused(
                        () -> gemm.multiply(a, Long.MAX_VALUE, 2, b, c, 0, scratch), "outside");
                for (long[] cols :
                        new long[][] {{-4, 4}, {0, -1}, {0, 6}, {1, 4}, {0, 1}, {1L << 62, 1}}) {
                    assertRefused(
                            () -> gemm.multiply(a, 0, 4, b, cols[0], cols[1], c, 0, scratch),
                            "%d columns from column %d of 5: expected multiples of %d"
                                    .formatted(cols[1], cols[0], gemm.colQuantum()));
                }
            }
        }
    }

    /** Their elements mean nothing without scales. */
    @Test
    void operandsOfEightBits() {
        for (String name : new String[] {"scalar", "portable", "vector"}) {
            Gemm gemm = Gemms.byName(name);
            for (DType type : new DType[] {DType.E4M3, DType.E5M2}) {
                assertFalse(gemm.multiplies(type), name);
                assertRefused(
                        () -> Gemms.byName(name, type, type),
                        "engine '%s' does not multiply %s with %s: expected fp32, fp16, bf16"
                                .formatted(name, type.label(), type.label()));
                try (Arena arena = Arena.ofConfined()) {
                    Matrix a = Matrix.allocate(arena, type, 4, 6);
                    Matrix b = Matrix.allocate(arena, type, 6, 5);
                    Matrix c = Matrix.allocate(arena, DType.FP32, 4, 5);
                    PackedB packed =
                            gemm.pack(Matrix.allocate(arena, DType.FP32, 6, 5), false, arena);
                    Scratch scratch = gemm.scratch(6, 5, arena);
                    assertRefused(
                            () -> gemm.multiply(a, 0, 4, packed, c, 0, scratch),
                            "A is [4, 6] " + type.label() + ": expected fp32, fp16 or bf16");
                    assertRefused(
                            () -> gemm.pack(b, false, arena),
                            "B is [6, 5] " + type.label() + ": expected fp32, fp16 or bf16");
                }
            }
        }
    }

    @Test
    void sumsThatCannotGoOn() {
        for (Gemm gemm :
                new Gemm[] {new TiledGemm(new ScalarTiles()), new TiledGemm(new VectorTiles())}) {
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = Matrix.allocate(arena, DType.FP32, 4, 6);
                PackedB b = gemm.pack(Matrix.allocate(arena, DType.FP32, 6, 5), false, arena);
                Scratch scratch = gemm.scratch(6, 5, arena);
                MemorySegment heap = MemorySegment.ofArray(new float[20]);
                MemorySegment fixed = arena.allocate(80).asReadOnly();
                String expected = ": expected fp32 off the heap that may be written";
                for (Map.Entry<String, Matrix> entry :
                        Map.of(
                                        "[4, 5] fp16", Matrix.allocate(arena, DType.FP16, 4, 5),
                                        "[4, 5] fp32 on the heap",
                                                Matrix.of(heap, DType.FP32, 4, 5),
                                        "[4, 5] fp32, read-only",
                                                Matrix.of(fixed, DType.FP32, 4, 5))
                                .entrySet()) {
                    Matrix c = entry.getValue();
                    assertRefused(
                            () -> gemm.multiply(a, 0, 4, b, 0, 5, true, c, 0, scratch),
                            "cannot go on from C " + entry.getKey() + expected);
                }
            }
        }
    }

    @Test
    void packedBAndScratchOfAnotherEngine() {
        Gemm scalar = new TiledGemm(new ScalarTiles());
        Gemm vector = new TiledGemm(new VectorTiles());
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.allocate(arena, DType.FP32, 4, 6);
            Matrix b = Matrix.allocate(arena, DType.FP32, 6, 5);
            Matrix c = Matrix.allocate(arena, DType.FP32, 4, 5);
            for (Gemm[] pair : new Gemm[][] {{scalar, vector}, {vector, scalar}}) {
                Gemm gemm = pair[0];
                PackedB own = gemm.pack(b, false, arena);
                PackedB foreign = pair[1].pack(b, false, arena);
                Scratch ownScratch = gemm.scratch(6, 5, arena);
                Scratch foreignScratch = pair[1].scratch(6, 5, arena);
                assertRefused(
                        () -> gemm.multiply(a, 0, 4, foreign, c, 0, ownScratch),
                        "engine " + gemm.name(),
                        "pack B with the engine that multiplies");
                assertRefused(
                        () -> gemm.multiply(a, 0, 4, own, c, 0, foreignScratch),
                        "scratch of another engine");
            }
        }
    }

    @Test
    void scratchThatIsTooSmall() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix a = Matrix.allocate(arena, DType.FP32, 4, 60);
            Matrix b = Matrix.allocate(arena, DType.FP32, 60, 500);
            Matrix c = Matrix.allocate(arena, DType.FP32, 4, 500);
            Gemm vector = new TiledGemm(new VectorTiles());
            PackedB forVector = vector.pack(b, false, arena);
            Scratch narrow = vector.scratch(60, 5, arena);
            assertRefused(() -> vector.multiply(a, 0, 4, forVector, c, 0, narrow), "columns of B");
        }
    }
}
