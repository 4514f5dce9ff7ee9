package dev.weft.cuda.kernel;

import dev.weft.cuda.Gpu;
import dev.weft.cuda.kernel.KernelFamily.Tiling;
import dev.weft.ffi.CudaModules;
import dev.weft.plan.Shards;
import dev.weft.tensor.BlockType;
import dev.weft.tensor.DType;

/**
 * The product kernel for one kind of operands on one GPU, loaded.
 *
 * @param family which source it comes from
 * @param function what is launched
 * @param clockReader a kernel that tells what the device's clock says
 * @param cluster thread blocks that share the loads of B
 * @param blocks thread blocks in the grid
 * @param tiling of a thread block
 */
public record GatedKernel(
        KernelFamily family,
        long function,
        long clockReader,
        int cluster,
        int blocks,
        Tiling tiling) {

    /** Multiprocessors that ranks which share a GPU leave to the kernels that copy between them. */
    private static final int LEFT_FOR_COPIES = 4;

    /**
     * @param blocks of the grid; 0 for as many as fit
     * @param share ranks whose grids are on the GPU at the same time and wait for copies within it;
     *     0 if no grid does
     */
    public static GatedKernel load(
            Gpu gpu,
            DType in,
            DType out,
            boolean bTransposed,
            Shards shards,
            int blocks,
            int share) {
        KernelFamily family = KernelFamily.of(gpu);
        return load(
                gpu,
                family,
                family.fittingTiling(gpu),
                in,
                out,
                bTransposed,
                shards,
                blocks,
                share);
    }

    /** One for an A of e4m3 with scales. */
    public static GatedKernel ofScaled(
            Gpu gpu, DType b, DType out, Shards shards, int blocks, int share) {
        if (KernelFamily.of(gpu) != KernelFamily.HOPPER) {
            throw new IllegalArgumentException(
                    "A of e4m3 on %s with kernel %s: expected compute capability 9.0 and kernel hopper"
                            .formatted(gpu, KernelFamily.of(gpu).source));
        }
        int cluster = pairsPay(shards, KernelFamily.FP8.rows) ? 2 : 1;
        KernelKey key = KernelVariants.fp8Gemm(b, out, cluster);
        return load(
                gpu, KernelFamily.FP8, KernelFamily.FP8.tiling(null), key, cluster, blocks, share);
    }

    /**
     * One for a B in blocks.
     *
     * @param rows of C; more than a tile has are multiplied by several
     */
    public static GatedKernel ofBlocks(
            Gpu gpu, BlockType b, DType in, DType out, long rows, int blocks, int share) {
        requireBlocks(gpu, b);
        KernelFamily family = KernelFamily.of(b);
        Tiling tiling =
                family.tilings.stream()
                        .filter(one -> rows <= one.rows())
                        .findFirst()
                        .orElse(family.tilings.getLast());
        KernelKey key = family.key(gpu, tiling, operands(in, out, true), 1);
        return load(gpu, family, tiling, key, 1, blocks, share);
    }

    /** Refuses a GPU that has no kernel for such blocks. */
    public static void requireBlocks(Gpu gpu, BlockType b) {
        if (!hasFewRows(gpu)) {
            throw new IllegalArgumentException(
                    "B of %s on %s: expected compute capability 9.0, and no kernel in -D%s"
                            .formatted(b.label(), gpu, KernelFamily.PROPERTY));
        }
    }

    /** One that continues sums and counts its tiles; the parameters are those of {@link #load}. */
    public static GatedKernel withSums(
            Gpu gpu,
            DType in,
            DType out,
            boolean bTransposed,
            Shards shards,
            int blocks,
            int share) {
        KernelFamily family = KernelFamily.of(gpu);
        if (family == KernelFamily.SIMT) {
            throw new IllegalArgumentException(
                    "sums over ranks with kernel simt: expected hopper or mma in -D%s"
                            .formatted(KernelFamily.PROPERTY));
        }
        Tiling tiling = family.fittingTiling(gpu);
        return load(gpu, family, tiling, in, out, bTransposed, shards, blocks, share, true);
    }

    /** Whether this GPU has a kernel for few rows, and no other one is forced. */
    public static boolean hasFewRows(Gpu gpu) {
        return KernelFamily.of(gpu) == KernelFamily.HOPPER
                && System.getProperty(KernelFamily.PROPERTY) == null;
    }

    /** The most rows of a tile for few rows that are fewer than {@code rows}; 0 if none are. */
    public static int fewerRows(long rows) {
        return KernelFamily.FEW_ROWS.tilings.stream()
                .mapToInt(Tiling::rows)
                .filter(each -> each < rows)
                .max()
                .orElse(0);
    }

    /**
     * One for few rows, or the usual one if there are too many.
     *
     * @param k rows of B
     * @param columns of B
     */
    public static GatedKernel forRows(
            Gpu gpu,
            DType in,
            DType out,
            boolean bTransposed,
            Shards shards,
            long k,
            long columns,
            int blocks,
            int share) {
        Tiling tiling =
                KernelFamily.ofFewRows(shards.totalRows(), k, columns, gpu.multiprocessors());
        if (tiling == null) {
            return load(gpu, in, out, bTransposed, shards, blocks, share);
        }
        return load(
                gpu, KernelFamily.FEW_ROWS, tiling, in, out, bTransposed, shards, blocks, share);
    }

    /** One of a family and tiling. */
    public static GatedKernel load(
            Gpu gpu,
            KernelFamily family,
            Tiling tiling,
            DType in,
            DType out,
            boolean bTransposed,
            Shards shards,
            int blocks,
            int share) {
        return load(gpu, family, tiling, in, out, bTransposed, shards, blocks, share, false);
    }

    private static GatedKernel load(
            Gpu gpu,
            KernelFamily family,
            Tiling tiling,
            DType in,
            DType out,
            boolean bTransposed,
            Shards shards,
            int blocks,
            int share,
            boolean sums) {
        int cluster = family == KernelFamily.HOPPER && pairsPay(shards, family.rows) ? 2 : 1;
        KernelKey plain = family.key(gpu, tiling, operands(in, out, bTransposed), cluster);
        KernelKey key = sums ? KernelVariants.withSums(plain) : plain;
        return load(gpu, family, tiling, key, cluster, blocks, share);
    }

    private static GatedKernel load(
            Gpu gpu,
            KernelFamily family,
            Tiling tiling,
            KernelKey key,
            int cluster,
            int blocks,
            int share) {
        long function = KernelCache.function(gpu, key, "gated_gemm");
        long clockReader = KernelCache.function(gpu, key, "read_clock");
        int sharedBytes = family.sharedBytes(tiling);
        CudaModules.setMaxDynamicShared(function, sharedBytes);
        int fitting = fitting(gpu, family, tiling, function, cluster);
        if (share > 0) {
            fitting = (fitting - LEFT_FOR_COPIES) / share / cluster * cluster;
        }
        if (fitting < cluster) {
            throw new IllegalArgumentException(
                    "%s ranks whose grids wait side by side on %s: expected fewer, or algorithm direct or sequential"
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
        return new GatedKernel(family, function, clockReader, cluster, grid, tiling);
    }

    /** Dynamic shared memory of a thread block. */
    public int sharedBytes() {
        return family.sharedBytes(tiling);
    }

    /** Threads of a block. */
    public int threads() {
        return family.threads(tiling);
    }

    /** Rows of C that one block takes at a time. */
    public int blockRows() {
        return tiling.rows();
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

    private static int fitting(
            Gpu gpu, KernelFamily family, Tiling tiling, long function, int cluster) {
        int sharedBytes = family.sharedBytes(tiling);
        if (cluster > 1) {
            return cluster
                    * CudaModules.maxActiveClusters(
                            function,
                            gpu.multiprocessors() / cluster * cluster,
                            1,
                            family.threads(tiling),
                            sharedBytes,
                            cluster);
        }
        int each = sharedBytes + KernelFamily.RESERVED_SHARED_BYTES;
        int most = family.mostBlocks(tiling);
        int blocks = Math.clamp(gpu.sharedBytesPerMultiprocessor() / each, 1, most);
        return gpu.multiprocessors() * blocks;
    }

    /** What a tile adds to its counter: each warpgroup of Hopper's kernel tells of its rows. */
    public int signalsPerTile() {
        return family == KernelFamily.HOPPER ? 2 * cluster : 1;
    }

    /** The most rows whose tiles are all multiplied at once, so that B comes from memory once. */
    public int rowsTogether() {
        return family.suitsFewRows() ? KernelFamily.MOST_FEW_ROWS : tiling.rows() * cluster;
    }

    public TileShape shape() {
        int width = tiling.width();
        // Kernels with wide tiles have some of half the width too, for the last round.
        int narrow = width == 256 ? width / 2 : width;
        return family == KernelFamily.FP8
                ? new TileShape(tiling.rows() * cluster, width, width, narrow, blocks / cluster)
                : new TileShape(tiling.rows() * cluster, width, narrow, blocks / cluster);
    }
}
