package dev.weft.gemm;

import dev.weft.telemetry.Fallback;

/**
 * Chooses an engine. Any thread may call it. The vector engine's class is loaded only after the
 * module that it needs was found, so that Weft runs without it.
 */
public final class Gemms {

    private static final String VECTOR_MODULE = "jdk.incubator.vector";
    private static final String HOW_TO_GET_IT = "start Java with --add-modules " + VECTOR_MODULE;

    private Gemms() {}

    /** The vector engine, or the scalar one where Java lacks the Vector API, which is logged. */
    public static Gemm auto() {
        if (vectorModulePresent()) {
            return VectorEngine.create();
        }
        Fallback.tell(
                "the scalar engine, which is slower",
                "module " + VECTOR_MODULE + " is not there: " + HOW_TO_GET_IT);
        return new ScalarGemm();
    }

    /**
     * The engine called {@code auto}, {@code scalar}, {@code vector} or {@code openblas}; the last
     * is never taken by itself, since it does not promise bits.
     */
    public static Gemm byName(String name) {
        return switch (name) {
            case "auto" -> auto();
            case "scalar" -> new ScalarGemm();
            case "vector" -> {
                if (!vectorModulePresent()) {
                    throw new IllegalArgumentException(
                            "engine 'vector' needs module " + VECTOR_MODULE + ": " + HOW_TO_GET_IT);
                }
                yield VectorEngine.create();
            }
            case "openblas" -> new OpenBlasGemm();
            default ->
                    throw new IllegalArgumentException(
                            "unknown engine '%s': expected auto, scalar, vector or openblas"
                                    .formatted(name));
        };
    }

    private static boolean vectorModulePresent() {
        return ModuleLayer.boot().findModule(VECTOR_MODULE).isPresent();
    }

    /** Keeps the reference to {@link VectorGemm} out of the class that must load without it. */
    private static final class VectorEngine {
        static Gemm create() {
            if (System.getProperty("os.arch").equals("aarch64")
                    && System.getProperty("weft.kernel.flags") == null) {
                Fallback.tell(
                        "kernels that are unrolled less, up to a tenth slower",
                        "start Java with -XX:LoopUnrollLimit=200 -Dweft.kernel.flags=set");
            }
            return new VectorGemm();
        }
    }
}
