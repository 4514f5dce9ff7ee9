package dev.weft.gemm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class BlockingTest {

    @Test
    void readsSizesAsTheKernelWritesThem() {
        assertEquals(2048 * 1024, Blocking.bytes("2048K"));
        assertEquals(512 * 1024, Blocking.bytes(""), "an empty answer counts as unknown");
        assertEquals(512 * 1024, Blocking.bytes("huge"));
    }

    @Test
    void everyKernelGetsAtLeastOneTile() {
        for (MicroKernel kernel : new MicroKernel[] {new Kernel4x2(), MicroKernel.preferred()}) {
            Blocking blocking = Blocking.of(kernel);
            assertTrue(blocking.rows() >= kernel.rows(), kernel + ": " + blocking);
            assertTrue(blocking.cols() >= 1, blocking.toString());
        }
    }
}
