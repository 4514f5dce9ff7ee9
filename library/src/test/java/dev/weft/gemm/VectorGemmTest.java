package dev.weft.gemm;

import static dev.weft.gemm.GemmCases.normal;
import static dev.weft.gemm.GemmCases.normalB;
import static dev.weft.gemm.GemmCases.product;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.Random;
import jdk.incubator.vector.FloatVector;
import org.junit.jupiter.api.Test;

class VectorGemmTest extends GemmContract {

    /** The kernel under test; the one for this machine unless a subclass says otherwise. */
    MicroKernel kernel() {
        return MicroKernel.preferred();
    }

    @Override
    Gemm gemm() {
        return new VectorGemm(kernel());
    }

    @Override
    int panelCols() {
        return kernel().cols();
    }

    @Override
    int blockDepth() {
        return MicroKernel.DEPTH;
    }

    @Test
    void namesItsVectorWidth() {
        int bits = FloatVector.SPECIES_PREFERRED.vectorBitSize();
        assertEquals("vector-" + bits, gemm().name());
    }

    @Test
    void agreesWithTheScalarEngineBitForBit() {
        for (long seed = 100; seed < 140; seed++) {
            Random random = new Random(seed);
            int rows = random.nextInt(150);
            int k = random.nextInt(1200);
            int n = random.nextInt(200);
            DType[] types = DType.values();
            DType out = types[random.nextInt(3)];
            boolean transposed = random.nextBoolean();
            try (Arena arena = Arena.ofConfined()) {
                Matrix a = normal(arena, types[random.nextInt(3)], rows, k, random);
                DType typeB = types[random.nextInt(3)];
                Matrix b = normalB(arena, typeB, k, n, transposed, random);
                Matrix scalar = product(new ScalarGemm(), arena, a, b, transposed, out);
                Matrix vector = product(gemm(), arena, a, b, transposed, out);
                assertTrue(
                        scalar.bitwiseEquals(vector),
                        "seed " + seed + ": row " + scalar.firstDifferentRow(vector) + " differs");
            }
        }
    }
}
