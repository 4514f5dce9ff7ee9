package dev.weft.gemm;

import dev.weft.gemm.code.TileCode;
import dev.weft.gemm.code.Tiles;
import dev.weft.telemetry.Fallback;
import java.util.Optional;

/**
 * Chooses an engine. Any thread may call it. The vector engine's class is loaded only after the
 * module that it needs was found, so that Weft runs without it.
 */
public final class Gemms {

    private static final String VECTOR_MODULE = "jdk.incubator.vector";
    private static final String HOW_TO_GET_IT = "start Java with --add-modules " + VECTOR_MODULE;

    private Gemms() {}

    /**
     * Machine code where there is some for this machine; else, which is logged, the vector engine,
     * or the scalar one where Java lacks the Vector API.
     */
    public static Gemm auto() {
        if (MachineCode.MISSING == null) {
            return new TiledGemm(MachineCode.TILES);
        }
        Gemm other = vectorModulePresent() ? new TiledGemm(Vectors.TILES) : new ScalarGemm();
        String slower = "engine " + other.name() + ", which is slower";
        Fallback.tell(slower, MachineCode.MISSING);
        return other;
    }

    /**
     * The engine called {@code auto}, {@code native}, {@code vector}, {@code scalar} or {@code
     * openblas}; the last is never taken by itself, since it does not promise bits.
     */
    public static Gemm byName(String name) {
        return switch (name) {
            case "auto" -> auto();
            case "native" -> {
                if (MachineCode.MISSING != null) {
                    throw new IllegalArgumentException("engine 'native': " + MachineCode.MISSING);
                }
                yield new TiledGemm(MachineCode.TILES);
            }
            case "scalar" -> new ScalarGemm();
            case "vector" -> {
                if (!vectorModulePresent()) {
                    throw new IllegalArgumentException(
                            "engine 'vector' needs module " + VECTOR_MODULE + ": " + HOW_TO_GET_IT);
                }
                yield new TiledGemm(Vectors.TILES);
            }
            case "openblas" -> new OpenBlasGemm();
            default ->
                    throw new IllegalArgumentException(
                            "unknown engine '%s': expected auto, native, vector, scalar or openblas"
                                    .formatted(name));
        };
    }

    /** Why there is no machine code for this machine, or empty where there is. */
    public static Optional<String> nativeUnavailable() {
        return Optional.ofNullable(MachineCode.MISSING);
    }

    private static boolean vectorModulePresent() {
        return ModuleLayer.boot().findModule(VECTOR_MODULE).isPresent();
    }

    /** Made once, where the module is there. */
    private static final class Vectors {
        static final Tiles TILES = new VectorTiles();
    }

    /** Written when it is first needed, once for the process. */
    private static final class MachineCode {
        static final Tiles TILES;

        /** Why there is none, or null. */
        static final String MISSING;

        static {
            Tiles tiles = null;
            String missing = null;
            try {
                tiles = TileCode.forThisMachine();
            } catch (IllegalStateException e) {
                missing = String.valueOf(e.getMessage());
            } catch (LinkageError e) {
                // Java forbids native calls.
                missing = String.valueOf(e.getCause() == null ? e : e.getCause().getMessage());
            }
            TILES = tiles;
            MISSING = missing;
        }
    }
}
