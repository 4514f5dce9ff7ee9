package dev.weft.op;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.fabric.transport.Ranks;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.gemm.Scratch;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.data.NormalData;
import java.lang.foreign.Arena;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;

class SharedBTest {

    private static final int RANKS = 3;

    private static Matrix matrix(Arena arena, long seed) {
        Matrix b = Matrix.allocate(arena, DType.FP16, 37, 150);
        new NormalData(seed, 0).fill(b);
        return b;
    }

    /** Packs on every rank, multiplies with what came out, and says whether it was shared. */
    private static void check(Arena arena, IntFunction<Matrix> ofRank, boolean shared) {
        Ranks.run(
                RANKS,
                fabric ->
                        checkRank(
                                Transport.of(fabric), arena, ofRank.apply(fabric.rank()), shared));
    }

    private static void checkRank(Transport fabric, Arena arena, Matrix b, boolean shared) {
        checkRank(fabric, arena, b, shared, Gemms.portable());
    }

    private static void checkRank(
            Transport fabric, Arena arena, Matrix b, boolean shared, Gemm gemm) {
        SharedB.Packed packed = new SharedB(fabric, gemm).pack(b, false, arena);
        if (shared) {
            assertNotNull(packed.region(), "one copy for all ranks");
        } else {
            assertNull(packed.region(), "a copy of its own");
        }
        Matrix a = Matrix.allocate(arena, DType.FP32, 5, b.rows());
        new NormalData(9, 9).fill(a);
        Matrix c = Matrix.allocate(arena, DType.FP32, 5, b.cols());
        Matrix expected = Matrix.allocate(arena, DType.FP32, 5, b.cols());
        Scratch scratch = gemm.scratch(b.rows(), b.cols(), arena);
        gemm.multiply(a, 0, 5, packed.b(), c, 0, scratch);
        gemm.multiply(a, 0, 5, gemm.pack(b, false, arena), expected, 0, scratch);
        assertTrue(expected.bitwiseEquals(c));
        if (packed.region() != null) {
            packed.region().close();
        }
    }

    @Test
    void ranksThatGiveOneMatrixShareOneCopy() {
        try (Arena arena = Arena.ofShared()) {
            Matrix b = matrix(arena, 1);
            check(arena, rank -> b, true);
        }
    }

    @Test
    void ranksThatGiveEqualMatricesShareOneCopy() {
        try (Arena arena = Arena.ofShared()) {
            check(arena, rank -> matrix(arena, 1), true);
        }
    }

    @Test
    void oneElementApartIsNotShared() {
        for (long element : new long[] {0, 149, 36 * 150, 37 * 150 - 1}) {
            try (Arena arena = Arena.ofShared()) {
                check(
                        arena,
                        rank -> {
                            Matrix b = matrix(arena, 1);
                            if (rank == RANKS - 1) {
                                b.set(element / 150, element % 150, 99);
                            }
                            return b;
                        },
                        false);
            }
        }
    }

    /** As many bytes, but other panels: read with the wrong layout it would be a wrong product. */
    @Test
    void enginesWithOtherLayoutsDoNotShare() {
        Gemm vector = Gemms.portable();
        Gemm scalar = Gemms.byName("scalar");
        Arena arena = Arena.ofAuto();
        Matrix b = Matrix.allocate(arena, DType.FP32, 37, 192);
        new NormalData(5, 0).fill(b);
        assertEquals(
                vector.packedBytes(37, 192, DType.FP32), scalar.packedBytes(37, 192, DType.FP32));
        boolean alike = vector.name().equals(scalar.name());
        Ranks.run(
                RANKS,
                fabric -> {
                    Gemm gemm = fabric.rank() == 1 ? scalar : vector;
                    checkRank(Transport.of(fabric), arena, b, alike, gemm);
                });
    }

    @Test
    void digestTellsShapesAndPlacesApart() {
        try (Arena arena = Arena.ofConfined()) {
            Matrix zeros = Matrix.allocate(arena, DType.FP16, 3, 5);
            long[] base = MatrixDigest.of(zeros);
            for (long i = 0; i < 15; i++) {
                zeros.set(i / 5, i % 5, 1);
                long[] other = MatrixDigest.of(zeros);
                assertTrue(base[0] != other[0] && base[1] != other[1], "element " + i);
                zeros.set(i / 5, i % 5, 0);
            }
            Matrix padded = Matrix.allocate(arena, DType.FP16, 3, 9).block(0, 3, 2, 5);
            assertEquals(base[0], MatrixDigest.of(padded)[0], "the pitch is not content");
        }
    }
}
