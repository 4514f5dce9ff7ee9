package dev.weft.gemm;

/** The kernel of machines with NEON; its vectors of 128 bits work everywhere. */
class Kernel4x4RotatedTest extends VectorGemmTest {

    @Override
    MicroKernel kernel() {
        return new Kernel4x4Rotated();
    }
}
