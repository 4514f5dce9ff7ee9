package dev.weft.cuda.op;

import java.util.Locale;

/** What multiplies on a GPU. */
enum CudaEngine {
    /** One kernel whose tiles wait for the rows that they read; same bits for every arrival. */
    GATED,
    /** cublasLt, one product per group of rows; promises the float64 bound. */
    CUBLAS;

    static CudaEngine named(String name) {
        for (CudaEngine engine : values()) {
            if (engine.label().equals(name)) {
                return engine;
            }
        }
        throw new IllegalArgumentException(
                "engine %s on a GPU: expected gated or cublas".formatted(name));
    }

    /** {@code gated} or {@code cublas}. */
    String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Whether a row's bits never depend on the rows that it is multiplied with. */
    boolean sameBitsForAnyRows() {
        return this == GATED;
    }
}
