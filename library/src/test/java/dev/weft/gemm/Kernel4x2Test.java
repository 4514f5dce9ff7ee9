package dev.weft.gemm;

/** The kernel that narrow vectors use, on whatever vectors this machine has. */
class Kernel4x2Test extends VectorGemmTest {

    @Override
    MicroKernel kernel() {
        return new Kernel4x2();
    }
}
