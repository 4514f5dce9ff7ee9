package dev.weft.gemm;

import dev.weft.gemm.code.BlockCode;
import dev.weft.gemm.code.BlockKernel;
import dev.weft.gemm.code.ScalarBlocks;
import dev.weft.gemm.code.TileCode;
import dev.weft.gemm.code.Tiles;
import dev.weft.process.Fallback;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * Chooses an engine. Thread-safe. The vector engine's class is loaded only if the module that it
 * needs was found, so that Weft runs without it.
 */
public final class Gemms {

    /** The names of all engines, and of the choices among them. */
    public static final List<String> NAMES =
            List.of("auto", "portable", "native", "amx", "vector", "scalar", "openblas");

    private static final String VECTOR_MODULE = "jdk.incubator.vector";
    private static final String HOW_TO_GET_IT = "start Java with --add-modules " + VECTOR_MODULE;

    private static final Tiles SCALAR = new ScalarTiles();
    private static final BlockKernel SCALAR_BLOCKS =
            new ScalarBlocks(8, 16, false, Integer.MAX_VALUE);

    private Gemms() {}

    /** The fastest engine for operands of these types: AMX for bf16 if this machine has it. */
    public static Gemm auto(DType a, DType b) {
        boolean bf16 = a == DType.BF16 && b == DType.BF16;
        return bf16 && Amx.CODE.missing == null ? new TiledGemm(Amx.CODE.kernel) : portable();
    }

    /** The product by the identity, of which nothing is stored: A itself, or its sum with C. */
    public static Gemm identity() {
        return IdentityGemm.IDENTITY;
    }

    /**
     * The fastest engine whose bits are the same on every machine: machine code if there is some
     * for this machine; otherwise, which is logged, the vector engine, or the scalar one if Java
     * lacks the Vector API.
     */
    public static Gemm portable() {
        if (Fp32.CODE.missing == null) {
            return new TiledGemm(Fp32.CODE.kernel);
        }
        Gemm other = new TiledGemm(vectorModulePresent() ? Vectors.TILES : SCALAR);
        String slower = "engine " + other.name() + ", which is slower";
        Fallback.report(slower, Fp32.CODE.missing);
        return other;
    }

    /**
     * The engine called {@code auto}, {@code portable}, {@code native}, {@code amx}, {@code
     * vector}, {@code scalar} or {@code openblas}; the last is used only on request, since it does
     * not promise bits.
     *
     * @param a the type of A, and {@code b} that of B; refused if the engine does not support them
     */
    public static Gemm byName(String name, DType a, DType b) {
        Gemm engine =
                switch (name) {
                    case "auto" -> auto(a, b);
                    case "portable" -> portable();
                    case "native" -> new TiledGemm(Fp32.CODE.wanted(name));
                    case "amx" -> new TiledGemm(Amx.CODE.wanted(name));
                    case "scalar" -> new TiledGemm(SCALAR);
                    case "vector" -> {
                        if (!vectorModulePresent()) {
                            throw new IllegalArgumentException(
                                    "engine 'vector' needs module "
                                            + VECTOR_MODULE
                                            + ": "
                                            + HOW_TO_GET_IT);
                        }
                        yield new TiledGemm(Vectors.TILES);
                    }
                    case "openblas" -> new OpenBlasGemm();
                    default -> throw unknown(name);
                };
        if (!engine.multiplies(a) || !engine.multiplies(b)) {
            throw new IllegalArgumentException(
                    "engine '%s' does not multiply %s with %s: expected %s"
                            .formatted(name, a.label(), b.label(), types(engine)));
        }
        return engine;
    }

    /**
     * The engine for a B in blocks: {@code auto} and {@code portable} are machine code if there is
     * some for this machine, otherwise, which is logged, Java; {@code native} and {@code scalar}
     * one of them. All have the same bits.
     */
    public static Gemm ofBlocks(String name, BlockType type) {
        return switch (name) {
            case "auto", "portable" -> {
                boolean none = Blocks.CODE.missing != null;
                if (none) {
                    String slower = "products of blocks in Java, which is slower";
                    Fallback.report(slower, Blocks.CODE.missing);
                }
                yield new BlockGemm(none ? SCALAR_BLOCKS : Blocks.CODE.kernel, type);
            }
            case "native" -> new BlockGemm(Blocks.CODE.wanted(name), type);
            case "scalar" -> new BlockGemm(SCALAR_BLOCKS, type);
            default -> {
                if (!NAMES.contains(name)) {
                    throw unknown(name);
                }
                throw new IllegalArgumentException(
                        "engine '%s' does not multiply %s: expected auto, portable, native or scalar"
                                .formatted(name, type.label()));
            }
        };
    }

    private static String types(Gemm engine) {
        return Arrays.stream(DType.values())
                .filter(engine::multiplies)
                .map(DType::label)
                .collect(Collectors.joining(", "));
    }

    /** The engine for operands of fp32, or if their type makes no difference. */
    public static Gemm byName(String name) {
        return byName(name, DType.FP32, DType.FP32);
    }

    /** The error for a name that is not in {@link #NAMES}. */
    public static IllegalArgumentException unknown(String name) {
        return new IllegalArgumentException(
                "unknown engine '%s': expected one of %s"
                        .formatted(name, String.join(", ", NAMES)));
    }

    /** An engine with the bits of the engine that has this {@link Gemm#name}. */
    public static Gemm withBitsOf(String engine) {
        for (BlockType type : BlockType.MULTIPLIED) {
            if (engine.startsWith(type.label() + "-")) {
                return ofBlocks("portable", type);
            }
        }
        return switch (engine) {
            case "amx", "openblas" -> byName(engine, DType.BF16, DType.BF16);
            default -> portable();
        };
    }

    /** Why there is no machine code for this machine, or empty if there is. */
    public static Optional<String> nativeUnavailable() {
        return Optional.ofNullable(Fp32.CODE.missing);
    }

    /** Why this machine does not multiply bf16 with AMX, or empty if it does. */
    public static Optional<String> amxUnavailable() {
        return Optional.ofNullable(Amx.CODE.missing);
    }

    private static boolean vectorModulePresent() {
        return ModuleLayer.boot().findModule(VECTOR_MODULE).isPresent();
    }

    /** Created once, if the module is present. */
    private static final class Vectors {
        static final Tiles TILES = new VectorTiles();
    }

    /** Machine code, written when it is first needed, once per process. */
    private static final class Fp32 {
        static final MachineCode<Tiles> CODE = MachineCode.of(TileCode::forThisMachine);
    }

    private static final class Blocks {
        static final MachineCode<BlockKernel> CODE = MachineCode.of(BlockCode::forThisMachine);
    }

    private static final class Amx {
        static final MachineCode<Tiles> CODE = MachineCode.of(TileCode::amx);
    }

    /**
     * @param missing why there is none, else null
     */
    private record MachineCode<K>(K kernel, String missing) {

        static <K> MachineCode<K> of(Supplier<? extends K> writer) {
            try {
                return new MachineCode<>(writer.get(), null);
            } catch (IllegalStateException e) {
                return new MachineCode<>(null, String.valueOf(e.getMessage()));
            } catch (LinkageError e) {
                // Java forbids native calls.
                Throwable cause = e.getCause() == null ? e : e.getCause();
                return new MachineCode<>(null, String.valueOf(cause.getMessage()));
            }
        }

        K wanted(String engine) {
            if (missing != null) {
                throw new IllegalArgumentException("engine '" + engine + "': " + missing);
            }
            return kernel;
        }
    }
}
