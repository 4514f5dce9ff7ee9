package dev.weft.cuda.kernel;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.ffi.CudaModules;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/**
 * The product kernel for one kind of operands on one GPU, loaded.
 *
 * @param kind which source it comes from
 * @param function what is launched
 * @param clockReader a kernel that tells what the device's clock says
 * @param cluster thread blocks that share the loads of B
 * @param blocks thread blocks in the grid
 * @param tiling of a thread block
 * @param sums whether tiles may start from sums in memory, and are counted
 */
public record GatedKernel(
        Kind kind,
        long function,
        long clockReader,
        int cluster,
        int blocks,
        Tiling tiling,
        boolean sums) {

    /**
     * Forces a kind, to try the one for older cards on a new one: {@code hopper}, {@code mma} or
     * {@code simt}.
     */
    public static final String KIND_PROPERTY = "weft.cuda.kernel";

    /** What the system takes of a multiprocessor's shared memory for every block. */
    private static final int RESERVED_SHARED_BYTES = 1024;

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

    /** The kernels there are. */
    public enum Kind {
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
        /** The same for operands of 8 bits with scales. */
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

        final String source;
        final int threads;

        /** Of the first tiling. */
        final int stageBytes;

        final int otherBytes;

        /** Thread blocks that its registers let one multiprocessor hold. */
        final int mostBlocks;

        final int rows;

        /** Those that it has, the best for most products first. */
        final List<Tiling> tilings;

        Kind(
                String source,
                int threads,
                int stageBytes,
                int otherBytes,
                int mostBlocks,
                Tiling... tilings) {
            this.source = source;
            this.threads = threads;
            this.stageBytes = stageBytes;
            this.otherBytes = otherBytes;
            this.mostBlocks = mostBlocks;
            this.rows = tilings[0].rows();
            this.tilings = List.of(tilings);
        }

        /** The best kind for operands: tensor cores where these can read them. */
        public static Kind of(Gpu gpu, DeviceMatrix a, DeviceMatrix b, DType out) {
            Kind kind = of(gpu);
            return suitTensorCores(a, b, out) ? kind : SIMT;
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
                    .filter(tiling -> GatedKernel.sharedBytes(this, tiling) <= most)
                    .findFirst()
                    .orElse(tilings.getLast());
        }

        /** The best kind for a GPU, or the one that the user forces. */
        public static Kind of(Gpu gpu) {
            return of(gpu.capability());
        }

        /**
         * Likewise, by compute capability in one number.
         *
         * @throws IllegalStateException if the GPU has no instructions for it
         * @throws IllegalArgumentException with the kinds, if another one is forced
         */
        public static Kind of(int capability) {
            boolean hopper = capability / 10 == 9;
            String forced = System.getProperty(KIND_PROPERTY);
            Kind kind = forced == null ? hopper ? HOPPER : MMA : named(forced);
            if (capability < 80 || kind == HOPPER && !hopper) {
                throw new IllegalStateException(
                        "compute capability %d.%d for the kernel %s: expected %s"
                                .formatted(
                                        capability / 10,
                                        capability % 10,
                                        kind.label(),
                                        kind == HOPPER ? "9.0" : "8.0 or later"));
            }
            return kind;
        }

        private static Kind named(String name) {
            return Stream.of(values())
                    .filter(kind -> kind.label().equals(name))
                    .findFirst()
                    .orElseThrow(
                            () ->
                                    new IllegalArgumentException(
                                            "-D%s=%s: expected hopper, mma or simt"
                                                    .formatted(KIND_PROPERTY, name)));
        }

        /** {@code hopper}, {@code mma} or {@code simt}. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

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
        Kind kind = Kind.of(gpu);
        return load(
                gpu, kind, kind.fittingTiling(gpu), in, out, bTransposed, shards, blocks, share);
    }

    /** One for an A of e4m3 with scales. */
    public static GatedKernel ofScaled(
            Gpu gpu, DType b, DType out, Shards shards, int blocks, int share) {
        if (Kind.of(gpu) != Kind.HOPPER) {
            throw new IllegalArgumentException(
                    "A of e4m3 on %s with kernel %s: expected compute capability 9.0 and kernel hopper"
                            .formatted(gpu, Kind.of(gpu).source));
        }
        int cluster = pairsPay(shards, Kind.FP8.rows) ? 2 : 1;
        KernelKey key = KernelVariants.fp8Gemm(b, out, cluster);
        return load(gpu, Kind.FP8, Kind.FP8.tiling(null), key, cluster, blocks, share, false);
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
        Kind kind = Kind.of(gpu);
        if (kind == Kind.SIMT) {
            throw new IllegalArgumentException(
                    "sums over ranks with kernel simt: expected hopper or mma in -D%s"
                            .formatted(KIND_PROPERTY));
        }
        Tiling tiling = kind.fittingTiling(gpu);
        return load(gpu, kind, tiling, in, out, bTransposed, shards, blocks, share, true);
    }

    /** One of a given kind and tiling. */
    public static GatedKernel load(
            Gpu gpu,
            Kind kind,
            Tiling tiling,
            DType in,
            DType out,
            boolean bTransposed,
            Shards shards,
            int blocks,
            int share) {
        return load(gpu, kind, tiling, in, out, bTransposed, shards, blocks, share, false);
    }

    private static GatedKernel load(
            Gpu gpu,
            Kind kind,
            Tiling tiling,
            DType in,
            DType out,
            boolean bTransposed,
            Shards shards,
            int blocks,
            int share,
            boolean sums) {
        int cluster = kind == Kind.HOPPER && pairsPay(shards, kind.rows) ? 2 : 1;
        KernelKey plain = key(gpu, kind, tiling, operands(in, out, bTransposed), cluster);
        KernelKey key = sums ? KernelVariants.withSums(plain) : plain;
        return load(gpu, kind, tiling, key, cluster, blocks, share, sums);
    }

    private static GatedKernel load(
            Gpu gpu,
            Kind kind,
            Tiling tiling,
            KernelKey key,
            int cluster,
            int blocks,
            int share,
            boolean sums) {
        long function = KernelCache.function(gpu, key, "gated_gemm");
        long clockReader = KernelCache.function(gpu, key, "read_clock");
        int sharedBytes = sharedBytes(kind, tiling);
        CudaModules.setMaxDynamicShared(function, sharedBytes);
        int fitting = fitting(gpu, kind, sharedBytes, function, cluster);
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
        return new GatedKernel(kind, function, clockReader, cluster, grid, tiling, sums);
    }

    private static KernelKey key(
            Gpu gpu, Kind kind, Tiling tiling, KernelVariants.Operands operands, int cluster) {
        return switch (kind) {
            case HOPPER ->
                    tiling.stages() == kind.tilings.getFirst().stages()
                            ? KernelVariants.hopperGemm(operands, cluster)
                            : KernelVariants.hopperGemm(operands, cluster, tiling.stages());
            case FP8 ->
                    throw new IllegalArgumentException("operands of 16 bits with " + kind.source);
            case MMA -> KernelVariants.mmaGemm(operands, gpu.architecture(), tiling.width());
            case SIMT -> KernelVariants.simtGemm(gpu.architecture());
        };
    }

    /** Only the kernel for older cards is compiled for the width of its tiles. */
    private static int sharedBytes(Kind kind, Tiling tiling) {
        int stageBytes =
                kind == Kind.MMA
                        ? (tiling.rows() + tiling.width()) * tiling.blockK() * Short.BYTES
                        : kind.stageBytes;
        return kind.otherBytes + stageBytes * tiling.stages();
    }

    /** Dynamic shared memory of a thread block. */
    public int sharedBytes() {
        return sharedBytes(kind, tiling);
    }

    /** Threads of a block. */
    public int threads() {
        return kind.threads;
    }

    /** Rows of C that one block takes at a time. */
    public int blockRows() {
        return kind.rows;
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

    private static int fitting(Gpu gpu, Kind kind, int sharedBytes, long function, int cluster) {
        if (cluster > 1) {
            return cluster
                    * CudaModules.maxActiveClusters(
                            function,
                            gpu.multiprocessors() / cluster * cluster,
                            1,
                            kind.threads,
                            sharedBytes,
                            cluster);
        }
        int each = sharedBytes + RESERVED_SHARED_BYTES;
        int blocks = Math.clamp(gpu.sharedBytesPerMultiprocessor() / each, 1, kind.mostBlocks);
        return gpu.multiprocessors() * blocks;
    }

    /** What a tile adds to its counter: each warpgroup of Hopper's kernel tells of its rows. */
    public int signalsPerTile() {
        return kind == Kind.HOPPER ? 2 * cluster : 1;
    }

    public TileShape shape() {
        int width = tiling.width();
        // Kernels with wide tiles have some of half the width too, for the last round.
        int narrow = width == 256 ? width / 2 : width;
        return kind == Kind.FP8
                ? new TileShape(kind.rows * cluster, width, width, narrow, blocks / cluster)
                : new TileShape(kind.rows * cluster, width, narrow, blocks / cluster);
    }
}
