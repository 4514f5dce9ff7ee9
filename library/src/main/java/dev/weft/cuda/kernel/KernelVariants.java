package dev.weft.cuda.kernel;

import dev.weft.cuda.kernel.KernelFamily.Tiling;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;

/**
 * Every way in which a kernel source is compiled: the switches of each source, and which of them
 * {@code weft dist} compiles beforehand. Any thread may call it.
 */
public final class KernelVariants {

    /** For cards with Hopper's instructions; its code runs on no other architecture. */
    public static final String HOPPER_GEMM = "hopper_gemm.cu";

    /** For few rows, on cards with Hopper's instructions. */
    public static final String FEW_ROWS_GEMM = "few_rows_gemm.cu";

    /** For few rows with a B in blocks, on cards with Hopper's instructions. */
    public static final String BLOCKS_GEMM = "blocks_gemm.cu";

    /** For operands of 8 bits with scales, on cards with Hopper's instructions. */
    public static final String FP8_GEMM = "fp8_gemm.cu";

    /** For all other cards, from sm_80 on. */
    public static final String MMA_GEMM = "mma_gemm.cu";

    /** Without tensor cores, for types and rows that they cannot read; from sm_80 on. */
    public static final String SIMT_GEMM = "simt_gemm.cu";

    /** Fills inputs and judges products. */
    public static final String CHECK = "check.cu";

    /** Adds up sums, applies epilogues and rounds; from sm_80 on. */
    public static final String FINISH = "finish.cu";

    /** All files that make up the kernels: the sources and the headers that they include. */
    public static final List<String> FILES =
            List.of(
                    BLOCKS_GEMM,
                    CHECK,
                    FEW_ROWS_GEMM,
                    FINISH,
                    FP8_GEMM,
                    HOPPER_GEMM,
                    MMA_GEMM,
                    SIMT_GEMM,
                    "few_rows.cuh",
                    "hopper.cuh",
                    "mma.cuh",
                    "schedule.cuh",
                    "warpgroup.cuh",
                    "wgmma.cuh");

    private static final String HOPPER = "sm_90a";
    private static final List<String> READY_ARCHITECTURES = List.of("sm_80", "sm_90");
    private static final List<Integer> CLUSTERS = List.of(1, 2);

    private static final List<BlockType> NONE = List.of();

    /** The source's own width of tiles. */
    private static final int MMA_COLUMNS = 256;

    private KernelVariants() {}

    /** The texts of all files by name; they come along with these classes. */
    public static Map<String, String> sources() {
        Map<String, String> texts = new TreeMap<>();
        for (String name : FILES) {
            String path = "/dev/weft/cuda/kernels/" + name;
            try (InputStream source = KernelVariants.class.getResourceAsStream(path)) {
                if (source == null) {
                    throw new FileNotFoundException(name + " is not among Weft's classes");
                }
                texts.put(name, new String(source.readAllBytes(), StandardCharsets.UTF_8));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        return Collections.unmodifiableMap(texts);
    }

    /** The gated product with Hopper's instructions; {@code cluster} blocks share their loads. */
    public static KernelKey hopperGemm(Operands operands, int cluster) {
        if (!CLUSTERS.contains(cluster)) {
            throw new IllegalArgumentException(
                    "cluster " + cluster + ": expected one of " + CLUSTERS);
        }
        return new KernelKey(HOPPER_GEMM, operands.options(), HOPPER).with("-DCLUSTER=" + cluster);
    }

    /** The same with another number of stages than the source's own, of blocks that are loaded. */
    public static KernelKey hopperGemm(Operands operands, int cluster, int stages) {
        return hopperGemm(operands, cluster).with("-DSTAGES=" + stages);
    }

    /** The gated product of as many rows as a tile has. */
    public static KernelKey fewRowsGemm(Operands operands, Tiling tiling) {
        return new KernelKey(FEW_ROWS_GEMM, operands.options(), HOPPER)
                .with("-DROWS=" + tiling.rows())
                .with("-DCOLS=" + tiling.width())
                .with("-DBLOCKS=" + tiling.blockK() / TileShape.K_BLOCK)
                .with("-DSTAGES=" + tiling.stages());
    }

    /** The gated product with a B in blocks, of as many rows as a tile has. */
    public static KernelKey blocksGemm(Operands operands, BlockType blocks, Tiling tiling) {
        return new KernelKey(BLOCKS_GEMM, operands.options(), HOPPER)
                .with("-DFORMAT=" + PackedBlocks.format(blocks))
                .with("-DROWS=" + tiling.rows())
                .with("-DBLOCKS=" + tiling.blockK() / TileShape.K_BLOCK)
                .with("-DSTAGES=" + tiling.stages());
    }

    /** The gated product of an A of e4m3 with a B of {@code b}, into C of {@code out}. */
    public static KernelKey fp8Gemm(DType b, DType out, int cluster) {
        return new KernelKey(
                FP8_GEMM,
                List.of(
                        "-DB_E5M2=" + (b == DType.E5M2 ? 1 : 0),
                        "-DOUT=" + DType.UNSCALED.indexOf(out),
                        "-DCLUSTER=" + cluster),
                HOPPER);
    }

    /** The gated product for any types, which are arguments of the launch. */
    public static KernelKey simtGemm(String architecture) {
        return new KernelKey(SIMT_GEMM, List.of(), architecture);
    }

    /** The gated product for any card from sm_80 on. */
    public static KernelKey mmaGemm(Operands operands, String architecture) {
        return new KernelKey(MMA_GEMM, operands.options(), architecture);
    }

    /** The same with tiles of at most {@code width} columns, 256 or 128. */
    public static KernelKey mmaGemm(Operands operands, String architecture, int width) {
        KernelKey usual = mmaGemm(operands, architecture);
        return width == MMA_COLUMNS ? usual : usual.with("-DTILE_COLUMNS=" + width);
    }

    /** A gated product whose tiles may start from sums in memory, and are counted. */
    public static KernelKey withSums(KernelKey product) {
        return product.with("-DSUMS=1");
    }

    /** The kernels that fill and judge. */
    public static KernelKey check(Operands operands, String architecture) {
        return new KernelKey(CHECK, operands.options(), architecture);
    }

    /** The kernel of epilogues: only what its text fuses is fused, as on the CPU. */
    public static KernelKey finish(String architecture) {
        return new KernelKey(FINISH, List.of("-fmad=false"), architecture);
    }

    /** Those that {@code weft dist} compiles beforehand; every other one is left to NVRTC. */
    public static List<KernelKey> ready() {
        List<KernelKey> ready = new ArrayList<>();
        for (Operands operands : Operands.all()) {
            for (int cluster : CLUSTERS) {
                ready.add(hopperGemm(operands, cluster));
                ready.add(withSums(hopperGemm(operands, cluster)));
            }
            for (Tiling tiling : KernelFamily.FEW_ROWS.tilings) {
                ready.add(fewRowsGemm(operands, tiling));
            }
            for (BlockType blocks : operands.transposedB() ? BlockType.MULTIPLIED : NONE) {
                for (Tiling tiling : KernelFamily.of(blocks).tilings) {
                    ready.add(blocksGemm(operands, blocks, tiling));
                }
            }
            for (String architecture : READY_ARCHITECTURES) {
                ready.add(mmaGemm(operands, architecture));
                ready.add(withSums(mmaGemm(operands, architecture)));
                ready.add(check(operands, architecture));
            }
        }
        for (int cluster : CLUSTERS) {
            for (DType out : DType.UNSCALED) {
                ready.add(fp8Gemm(DType.E4M3, out, cluster));
                ready.add(fp8Gemm(DType.E5M2, out, cluster));
            }
        }
        for (String architecture : READY_ARCHITECTURES) {
            ready.add(simtGemm(architecture));
            ready.add(finish(architecture));
        }
        return List.copyOf(ready);
    }

    /**
     * The switches that all sources have.
     *
     * @param bf16 A and B are bf16, else fp16
     * @param fp32Out C is fp32, else of the type of A and B
     * @param transposedB B is [N, K], else [K, N]
     */
    public record Operands(boolean bf16, boolean fp32Out, boolean transposedB) {

        private static List<Operands> all() {
            return IntStream.range(0, 8)
                    .mapToObj(bits -> new Operands(bits >= 4, (bits & 2) != 0, (bits & 1) != 0))
                    .toList();
        }

        private List<String> options() {
            return List.of(
                    "-DIN_BF16=" + (bf16 ? 1 : 0),
                    "-DOUT_FP32=" + (fp32Out ? 1 : 0),
                    "-DB_TRANSPOSED=" + (transposedB ? 1 : 0));
        }
    }
}
