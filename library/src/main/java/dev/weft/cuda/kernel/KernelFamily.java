package dev.weft.cuda.kernel;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/** The product kernels there are, each from a source of its own. */
public enum KernelFamily {
    /** Tensor copies and warpgroup products: compute capability 9. */
    HOPPER(
            KernelVariants.HOPPER_GEMM,
            384,
            49_152,
            32_768 + 1024,
            1,
            new Tiling(128, 256, 64, 8, 4),
            new Tiling(128, 256, 64, 8, 3),
            new Tiling(128, 192, 64, 8, 4),
            new Tiling(128, 192, 64, 8, 3),
            new Tiling(128, 128, 64, 8, 4),
            new Tiling(128, 128, 64, 8, 3)),
    /**
     * For few rows, beside {@link #HOPPER} and with the same bits: tensor copies and warp products.
     * Of the same rows, the narrow tiles come first.
     */
    FEW_ROWS(
            KernelVariants.FEW_ROWS_GEMM,
            0,
            0,
            1024,
            2,
            new Tiling(8, 32, 512, 2, 5),
            new Tiling(8, 64, 128, 4, 6),
            new Tiling(32, 32, 256, 4, 6),
            new Tiling(32, 64, 128, 4, 4)),
    /** Rows of 16 bits and a B in blocks: tensor copies and warp products. */
    Q8_0(BlockType.Q8_0, 1, new Tiling(8, 64, 512, 16, 4), new Tiling(32, 64, 512, 16, 3)),
    /** Likewise. */
    Q4_0(BlockType.Q4_0, 2, new Tiling(8, 64, 512, 8, 4), new Tiling(32, 64, 256, 8, 4)),
    /** Likewise. */
    Q4_K(BlockType.Q4_K, 2, new Tiling(8, 64, 512, 8, 3), new Tiling(32, 64, 256, 8, 4)),
    /** Tensor copies and warpgroup products for operands of 8 bits with scales. */
    FP8(
            KernelVariants.FP8_GEMM,
            384,
            49_152 + 512,
            32_768 + 1024,
            1,
            new Tiling(128, 256, 128, 8, 4)),
    /** Asynchronous copies and warp products: compute capability 8 and later. */
    MMA(
            KernelVariants.MMA_GEMM,
            256,
            49_152,
            0,
            1,
            new Tiling(128, 256, 64, 8, 3),
            new Tiling(128, 128, 64, 8, 3)),
    /** Plain multiply-adds of any types: compute capability 8 and later. */
    SIMT(KernelVariants.SIMT_GEMM, 256, 16_896, 0, 2, new Tiling(128, 128, 16, 8, 2));

    /**
     * Forces one, to try the one for older cards on a new one: {@code hopper}, {@code mma} or
     * {@code simt}.
     */
    public static final String PROPERTY = "weft.cuda.kernel";

    /** Beside those that multiply: they bring A and B, and watch flags. */
    private static final int OTHER_WARPS_OF_FEW_ROWS = 3;

    private static final int BARRIER_BYTES = 1024;

    /** The most that are multiplied together, by several rows of tiles. */
    static final int MOST_FEW_ROWS = 128;

    /** Bytes of B that are read again and again without coming from memory each time. */
    private static final long STAYS_IN_L2 = 24L << 20;

    /** What the system takes of a multiprocessor's shared memory for every block. */
    static final int RESERVED_SHARED_BYTES = 1024;

    /**
     * How one thread block cuts the product.
     *
     * @param rows of a tile of C
     * @param width columns of a tile; of the widest, if the kernel has several
     * @param blockK columns of A that are loaded at once
     * @param warps that multiply; others may load
     * @param stages blocks of A and B that shared memory holds
     */
    public record Tiling(int rows, int width, int blockK, int warps, int stages) {

        @Override
        public String toString() {
            return "%d x %d x %d by %d warps in %d stages"
                    .formatted(rows, width, blockK, warps, stages);
        }
    }

    final String source;

    /** Of B; null if it has none. */
    final BlockType blocks;

    private final int threads;

    /** Of the first tiling. */
    private final int stageBytes;

    private final int otherBytes;

    /** Thread blocks that its registers let one multiprocessor hold. */
    private final int mostBlocks;

    final int rows;

    /** Those that it has, the best for most products first. */
    final List<Tiling> tilings;

    KernelFamily(
            String source,
            int threads,
            int stageBytes,
            int otherBytes,
            int mostBlocks,
            Tiling... tilings) {
        this(source, null, threads, stageBytes, otherBytes, mostBlocks, tilings);
    }

    KernelFamily(BlockType blocks, int mostBlocks, Tiling... tilings) {
        this(KernelVariants.BLOCKS_GEMM, blocks, 0, 0, BARRIER_BYTES, mostBlocks, tilings);
    }

    KernelFamily(
            String source,
            BlockType blocks,
            int threads,
            int stageBytes,
            int otherBytes,
            int mostBlocks,
            Tiling... tilings) {
        this.source = source;
        this.blocks = blocks;
        this.threads = threads;
        this.stageBytes = stageBytes;
        this.otherBytes = otherBytes;
        this.mostBlocks = mostBlocks;
        this.rows = tilings[0].rows();
        this.tilings = List.of(tilings);
    }

    /** The best one for operands: tensor cores where these can read them. */
    public static KernelFamily of(Gpu gpu, DeviceMatrix a, DeviceMatrix b, DType out) {
        KernelFamily family = of(gpu);
        return suitTensorCores(a, b, out) ? family : SIMT;
    }

    /** Whether tensor cores multiply such operands. */
    public static boolean suitTensorCores(DeviceMatrix a, DeviceMatrix b, DType out) {
        return a.dtype() != DType.FP32
                && b.dtype() == a.dtype()
                && (out == a.dtype() || out == DType.FP32)
                && a.isAligned()
                && b.isAligned();
    }

    /**
     * The tiling that was asked for, or the best one for null.
     *
     * @throws IllegalArgumentException with those that there are, if it is none of them
     */
    public Tiling tiling(Tiling wanted) {
        if (wanted != null && !tilings.contains(wanted)) {
            throw new IllegalArgumentException(
                    "tiles of %s: expected one of those of %s, %s"
                            .formatted(wanted, source, tilings));
        }
        return wanted == null ? tilings.getFirst() : wanted;
    }

    /** The first tiling for which a GPU has the shared memory. */
    public Tiling fittingTiling(Gpu gpu) {
        int most = gpu.sharedBytesPerMultiprocessor() - RESERVED_SHARED_BYTES;
        return tilings.stream()
                .filter(tiling -> sharedBytes(tiling) <= most)
                .findFirst()
                .orElse(tilings.getLast());
    }

    /** The best one for a GPU, or the one that the user forces. */
    public static KernelFamily of(Gpu gpu) {
        return of(gpu.capability());
    }

    /**
     * Likewise, by compute capability in one number.
     *
     * @throws IllegalStateException if the GPU has no instructions for it
     * @throws IllegalArgumentException with the names, if another one is forced
     */
    public static KernelFamily of(int capability) {
        boolean hopper = capability / 10 == 9;
        String forced = System.getProperty(PROPERTY);
        KernelFamily family = forced == null ? hopper ? HOPPER : MMA : named(forced);
        if (capability < 80 || family == HOPPER && !hopper) {
            throw new IllegalStateException(
                    "compute capability %d.%d for the kernel %s: expected %s"
                            .formatted(
                                    capability / 10,
                                    capability % 10,
                                    family.label(),
                                    family == HOPPER ? "9.0" : "8.0 or later"));
        }
        return family;
    }

    private static KernelFamily named(String name) {
        return Stream.of(HOPPER, MMA, SIMT)
                .filter(family -> family.label().equals(name))
                .findFirst()
                .orElseThrow(
                        () ->
                                new IllegalArgumentException(
                                        "-D%s=%s: expected hopper, mma or simt"
                                                .formatted(PROPERTY, name)));
    }

    /** {@code hopper}, {@code mma} or {@code simt}. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /**
     * The tiling for so many rows and columns: the smallest with room for them, narrow while there
     * is a multiprocessor for each tile, so that more of them read B. Null if there are too many
     * rows for one tile, and B is too large to be read for each of several.
     */
    static Tiling ofFewRows(long rows, long k, long columns, int multiprocessors) {
        Tiling largest = FEW_ROWS.tilings.getLast();
        for (Tiling tiling : FEW_ROWS.tilings) {
            boolean wide = tiling.width() == largest.width();
            if (rows <= tiling.rows()
                    && (wide || columns <= (long) tiling.width() * multiprocessors)) {
                return tiling;
            }
        }
        return rows <= MOST_FEW_ROWS && Short.BYTES * k * columns <= STAYS_IN_L2 ? largest : null;
    }

    /** The family for a B in blocks. */
    static KernelFamily of(BlockType blocks) {
        return Stream.of(values())
                .filter(family -> family.blocks == blocks)
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("blocks of " + blocks.label()));
    }

    /** Whether tiles are so small that one thread block multiplies few rows. */
    boolean suitsFewRows() {
        return this == FEW_ROWS || blocks != null;
    }

    /** Thread blocks that registers let one multiprocessor hold. */
    int mostBlocks(Tiling tiling) {
        return blocks != null && tiling.rows() > tilings.getFirst().rows() ? 1 : mostBlocks;
    }

    /** Threads of a block. */
    int threads(Tiling tiling) {
        return suitsFewRows() ? 32 * (tiling.warps() + OTHER_WARPS_OF_FEW_ROWS) : threads;
    }

    /** Whether A and B are read by tensor maps. */
    boolean readsMaps() {
        return this == HOPPER || this == FP8 || suitsFewRows();
    }

    /** Whether the kernel notes when chunks arrive. */
    public boolean watchesArrivals() {
        return this == HOPPER || suitsFewRows();
    }

    /** Only some kernels are compiled for the size of their tiles. */
    int sharedBytes(Tiling tiling) {
        if (blocks != null) {
            return otherBytes + PackedBlocks.sharedBytes(blocks, tiling);
        }
        int eachStage =
                this == MMA || this == FEW_ROWS
                        ? (tiling.rows() + tiling.width()) * tiling.blockK() * Short.BYTES
                        : stageBytes;
        return otherBytes + eachStage * tiling.stages();
    }

    /** What the kernel for operands of 16 bits is compiled from; any types with {@link #SIMT}. */
    KernelKey key(Gpu gpu, Tiling tiling, KernelVariants.Operands operands, int cluster) {
        return switch (this) {
            case HOPPER ->
                    tiling.stages() == tilings.getFirst().stages()
                            ? KernelVariants.hopperGemm(operands, cluster)
                            : KernelVariants.hopperGemm(operands, cluster, tiling.stages());
            case FEW_ROWS -> KernelVariants.fewRowsGemm(operands, tiling);
            case Q8_0, Q4_0, Q4_K -> KernelVariants.blocksGemm(operands, blocks, tiling);
            case FP8 -> throw new IllegalArgumentException("operands of 16 bits with " + source);
            case MMA -> KernelVariants.mmaGemm(operands, gpu.architecture(), tiling.width());
            case SIMT -> KernelVariants.simtGemm(gpu.architecture());
        };
    }
}
