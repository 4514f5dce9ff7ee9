package dev.weft.cuda.exec;

import dev.weft.cuda.Gpu;
import dev.weft.ffi.CudaModules;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.Locale;

/**
 * The product kernel for one kind of operands on one GPU, loaded.
 *
 * @param kind which source it comes from
 * @param function what is launched
 * @param cluster thread blocks that share the loads of B
 * @param blocks thread blocks in the grid
 */
public record GatedKernel(Kind kind, long function, int cluster, int blocks) {

    /**
     * Forces a kind, to try the one for older cards on a new one: {@code hopper} or {@code mma}.
     */
    public static final String KIND_PROPERTY = "weft.cuda.kernel";

    /** What the system takes of a multiprocessor's shared memory for every block. */
    private static final int RESERVED_SHARED_BYTES = 1024;

    /** The kernels there are. */
    public enum Kind {
        /** Tensor copies and warpgroup products: compute capability 9. */
        HOPPER(KernelVariants.HOPPER_GEMM, 384, 4 * 49_152 + 32_768 + 1024, 1, 128, 256, 128),
        /** Asynchronous copies and warp products: compute capability 8 and later. */
        MMA(KernelVariants.MMA_GEMM, 256, 98_304, 2, 128, 128, 128);

        final String source;
        final int threads;
        final int sharedBytes;

        /** Thread blocks that its registers let one multiprocessor hold. */
        final int mostBlocks;

        final int rows;
        final int width;
        final int narrowWidth;

        Kind(
                String source,
                int threads,
                int sharedBytes,
                int mostBlocks,
                int rows,
                int width,
                int narrowWidth) {
            this.source = source;
            this.threads = threads;
            this.sharedBytes = sharedBytes;
            this.mostBlocks = mostBlocks;
            this.rows = rows;
            this.width = width;
            this.narrowWidth = narrowWidth;
        }

        /** The best kind for a GPU, or the one that the user forces. */
        static Kind of(Gpu gpu) {
            String forced = System.getProperty(KIND_PROPERTY);
            Kind kind =
                    forced == null
                            ? gpu.hasHopperInstructions() ? HOPPER : MMA
                            : Kind.valueOf(forced.toUpperCase(Locale.ROOT));
            if (gpu.capability() < 80 || kind == HOPPER && !gpu.hasHopperInstructions()) {
                throw new IllegalStateException(
                        "%s has no instructions for the kernel %s: expected compute capability %s"
                                .formatted(
                                        gpu, kind.source, kind == HOPPER ? "9.0" : "8.0 or later"));
            }
            return kind;
        }
    }

    /** Multiprocessors that ranks which share a GPU leave to the kernels that copy between them. */
    private static final int LEFT_FOR_COPIES = 4;

    /**
     * @param blocks of the grid; 0 for as many as there is room for
     * @param share ranks whose grids are on the GPU at the same time and wait for copies within it;
     *     0 where no grid does
     */
    public static GatedKernel load(
            Gpu gpu,
            DType in,
            DType out,
            boolean bTransposed,
            Shards shards,
            int blocks,
            int share) {
        Kind kind = Kind.of(gpu);
        int cluster = kind == Kind.HOPPER && pairsPay(shards, kind.rows) ? 2 : 1;
        KernelVariants.Operands operands = operands(in, out, bTransposed);
        KernelKey key =
                kind == Kind.HOPPER
                        ? KernelVariants.hopperGemm(operands, cluster)
                        : KernelVariants.mmaGemm(operands, gpu.architecture());
        long function = KernelCache.function(gpu, key, "gated_gemm");
        CudaModules.setMaxDynamicShared(function, kind.sharedBytes);
        int fitting = fitting(gpu, kind, function, cluster);
        if (share > 0) {
            fitting = (fitting - LEFT_FOR_COPIES) / share / cluster * cluster;
        }
        if (fitting < cluster) {
            throw new IllegalArgumentException(
                    ("%s ranks that copy within %s: expected fewer, or algorithm direct or"
                                    + " sequential")
                            .formatted(share, gpu));
        }
        if (blocks > fitting || blocks > 0 && blocks < cluster) {
            throw new IllegalArgumentException(
                    "%s compute blocks: expected %s to %s, as many as %s holds at once%s"
                            .formatted(
                                    blocks,
                                    cluster,
                                    fitting,
                                    gpu,
                                    share > 1 ? " for each of " + share + " ranks" : ""));
        }
        int grid = blocks == 0 ? fitting : blocks / cluster * cluster;
        return new GatedKernel(kind, function, cluster, grid);
    }

    /** The switches of a kernel for such matrices. */
    public static KernelVariants.Operands operands(DType in, DType out, boolean bTransposed) {
        return new KernelVariants.Operands(in == DType.BF16, out == DType.FP32, bTransposed);
    }

    /** Whether tiles twice as high waste less than a twentieth more rows of short shards. */
    public static boolean pairsPay(Shards shards, int tileRows) {
        long single = 0;
        long paired = 0;
        for (int r = 0; r < shards.ranks(); r++) {
            single += Math.ceilDiv(shards.rows(r), tileRows);
            paired += 2 * Math.ceilDiv(shards.rows(r), 2L * tileRows);
        }
        return paired * 20 <= single * 21;
    }

    private static int fitting(Gpu gpu, Kind kind, long function, int cluster) {
        if (cluster > 1) {
            return cluster
                    * CudaModules.maxActiveClusters(
                            function,
                            gpu.multiprocessors() / cluster * cluster,
                            1,
                            kind.threads,
                            kind.sharedBytes,
                            cluster);
        }
        int each = kind.sharedBytes + RESERVED_SHARED_BYTES;
        int blocks = Math.clamp(gpu.sharedBytesPerMultiprocessor() / each, 1, kind.mostBlocks);
        return gpu.multiprocessors() * blocks;
    }

    public TileShape shape() {
        return new TileShape(kind.rows * cluster, kind.width, kind.narrowWidth, blocks / cluster);
    }
}
