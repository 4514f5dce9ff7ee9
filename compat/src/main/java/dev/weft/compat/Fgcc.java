package dev.weft.compat;

import dev.weft.compat.Place.Size;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.op.Operator;
import dev.weft.op.OperatorBuilder;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.Arrays;

/**
 * Fine-grained all-gather + matmul: {@link #allgatherComputeMatmul}, or prepared once and called
 * many times. Ranks form replica groups of {@code tpDegree} consecutive ranks, and each group
 * gathers separately. A rank gives its rows [m, K] of A and its columns [K, N] of B, and gets the
 * product of all rows of its group with its columns.
 *
 * <p>On both paths, fragments of A travel round a ring through two buffers of one shard each;
 * gathered A is never stored. A rank's rows are cut into L x C slices: each of the L programs
 * multiplies its own, and each of the C channels, which permute at the same time, moves its own.
 * Sums are fp32. The output has the type that holds both inputs, and is bitwise the unfused
 * product. Sizes need not be multiples of any tile. Collective; used by one thread at a time.
 *
 * @param <M> the type of matrix: {@link Matrix} in host memory, or {@link DeviceMatrix} on a GPU
 */
public final class Fgcc<M> extends PreparedRing<M> {

    /**
     * The most ranks of one GPU that form a ring there. Its copies grow with the square of the
     * ranks, and each takes several calls of the driver; that these get in each other's way is
     * inferred, not measured. On an H200, calls took 1.1 to 2.2 times as long as gathering first
     * with 4 ranks, up to 2.4 times with 16 and 32 times with 64. More ranks read each other's rows
     * in place.
     */
    private static final int MOST_RING_RANKS_OF_A_GPU = 4;

    private final Fabric world;
    private final Fabric group;
    private final FgccLayout layout;
    private final Place<M> place;

    private Fgcc(
            Fabric world, Fabric group, FgccLayout layout, Operator<M> operator, Place<M> place) {
        super(operator);
        this.world = world;
        this.group = group;
        this.layout = layout;
        this.place = place;
    }

    /** {@link #allgatherComputeMatmul} on the path that the source's rule chooses. */
    public static FgccResult<Matrix> allgatherComputeMatmul(
            Fabric world, Matrix lhs, Matrix rhs, int tpDegree, int numGroups) {
        return allgatherComputeMatmul(world, lhs, rhs, tpDegree, numGroups, false);
    }

    /** {@link #allgatherComputeMatmul} with one program per rank and the capacity of trn2. */
    public static FgccResult<Matrix> allgatherComputeMatmul(
            Fabric world, Matrix lhs, Matrix rhs, int tpDegree, int numGroups, boolean forceHbmCc) {
        return allgatherComputeMatmul(
                world, lhs, rhs, tpDegree, numGroups, forceHbmCc, FgccConfig.DEFAULT);
    }

    /**
     * Prepares and calls once. Collective over {@code world}. As in the source, the result is in
     * memory that the group's other ranks can read, by {@link FgccResult#peer}. Close it to free
     * that memory.
     *
     * @param lhs this rank's rows of A, [m, K]
     * @param rhs this rank's columns of B, [K, N]
     * @param tpDegree ranks that gather together; even
     * @param numGroups replica groups; {@code tpDegree * numGroups} ranks are in {@code world}
     * @param forceHbmCc uses the HBM path even if the SBUF path would do
     */
    public static FgccResult<Matrix> allgatherComputeMatmul(
            Fabric world,
            Matrix lhs,
            Matrix rhs,
            int tpDegree,
            int numGroups,
            boolean forceHbmCc,
            FgccConfig config) {
        return allgatherComputeMatmul(
                Place.HOST, world, lhs, rhs, tpDegree, numGroups, forceHbmCc, config);
    }

    /** {@link #allgatherComputeMatmul} in host memory or on a GPU. */
    public static <M> FgccResult<M> allgatherComputeMatmul(
            Place<M> place,
            Fabric world,
            M lhs,
            M rhs,
            int tpDegree,
            int numGroups,
            boolean forceHbmCc,
            FgccConfig config) {
        Size size = place.size(lhs);
        ReplicaGroups groups = consecutive(world, tpDegree, numGroups);
        Fgcc<M> prepared =
                prepare(
                        place,
                        world,
                        size.rows(),
                        size.cols(),
                        size.dtype(),
                        rhs,
                        groups,
                        forceHbmCc,
                        config.withSharedResult());
        try {
            return prepared.call(lhs).closing(prepared);
        } catch (RuntimeException | Error e) {
            prepared.close();
            throw e;
        }
    }

    /**
     * Checks, agrees with the other ranks, packs B and reserves memory. Collective over {@code
     * world}. B may be freed afterwards.
     *
     * @param m rows of A on each rank, the same on all
     * @param k columns of A
     * @param aType type of A
     * @param rhs this rank's columns of B, [K, N]
     */
    public static Fgcc<Matrix> prepare(
            Fabric world,
            long m,
            long k,
            DType aType,
            Matrix rhs,
            int tpDegree,
            int numGroups,
            boolean forceHbmCc,
            FgccConfig config) {
        ReplicaGroups groups = consecutive(world, tpDegree, numGroups);
        return prepare(Place.HOST, world, m, k, aType, rhs, groups, forceHbmCc, config);
    }

    /**
     * Whether ranks read each other's rows where they are.
     *
     * @param gpus of each rank
     */
    static boolean isInPlace(boolean oneHost, long[] gpus) {
        return oneHost
                && gpus.length > MOST_RING_RANKS_OF_A_GPU
                && Arrays.stream(gpus).distinct().count() == 1;
    }

    /**
     * Like the other {@code prepare}, in host memory or on a GPU, where B must stay allocated, for
     * any lists of ranks that gather together, the same on every rank. Each has an even number of
     * ranks, its tp_degree. A rank in none of them makes the calls too, but does not take part: its
     * rows are not sent, and its product has no rows.
     */
    public static <M> Fgcc<M> prepare(
            Place<M> place,
            Fabric world,
            long m,
            long k,
            DType aType,
            M rhs,
            ReplicaGroups replicaGroups,
            boolean forceHbmCc,
            FgccConfig config) {
        Fabric group = null;
        try {
            ReplicaGroups lists = replicaGroups.in(world.size());
            boolean sitsOut = lists.groupOf(world.rank()) < 0;
            int tpDegree = lists.with(world.rank()).size();
            if (!sitsOut) {
                checkDegree(tpDegree);
            }
            Size b = place.size(rhs);
            checkInner(m, k, aType, b);
            Path mine = config.path(tpDegree, m, k, b.cols(), aType, b.dtype(), forceHbmCc);
            long rowsHere = sitsOut ? 0 : m;
            FgccLayout wanted = FgccLayout.of(mine, tpDegree, config.lnc(), rowsHere, b.cols());
            agree(world, "num_groups", lists.count());
            agree(world, "lnc", config.lnc());
            group = lists.isAll(world.size()) ? world : world.split(lists);
            FgccLayout layout = wanted.on(agreedPath(group, mine));
            OperatorBuilder<M, ?> builder = place.operator(group, world.size());
            builder.b(rhs).output(DType.promote(aType, b.dtype()));
            if (sitsOut) {
                builder.a(Shards.of(0), aType).algorithm(Algorithm.SEQUENTIAL);
            } else {
                builder.a(Shards.even(m * tpDegree, tpDegree), aType);
                if (config.sharedResult()) {
                    builder.sharedResults();
                }
                travel(builder, layout, isInPlace(group.sharesMemory(), place.gpus(group)));
            }
            return new Fgcc<>(world, group, layout, builder.prepare(), place);
        } catch (RuntimeException | Error e) {
            // Peers that have passed their own checks wait for this rank: tell them at once.
            world.fail(e);
            if (group != null && group != world) {
                group.close();
            }
            throw e;
        }
    }

    private static void checkDegree(int tpDegree) {
        if (tpDegree < 1 || tpDegree % 2 != 0) {
            throw new IllegalArgumentException(
                    "tp_degree " + tpDegree + ": expected an even number");
        }
    }

    private static ReplicaGroups consecutive(Fabric world, int tpDegree, int numGroups) {
        try {
            checkDegree(tpDegree);
            long ranks = (long) tpDegree * numGroups;
            if (numGroups < 1 || ranks != world.size()) {
                throw new IllegalArgumentException(
                        "tp_degree %s times num_groups %s is %s: expected the %s ranks of the world"
                                .formatted(tpDegree, numGroups, ranks, world.size()));
            }
            return ReplicaGroups.consecutive(numGroups, tpDegree);
        } catch (IllegalArgumentException e) {
            world.fail(e);
            throw e;
        }
    }

    private static void checkInner(long m, long k, DType aType, Size rhs) {
        if (k != rhs.rows()) {
            throw new IllegalArgumentException(
                    "lhs [%s, %s] %s and rhs %s differ in K: %s and %s"
                            .formatted(m, k, aType.label(), rhs.text(), k, rhs.rows()));
        }
    }

    private static void agree(Fabric world, String what, long mine) {
        long[] all = world.exchange(mine);
        for (int rank = 0; rank < all.length; rank++) {
            if (all[rank] != mine) {
                throw new IllegalArgumentException(
                        "%s is %s on rank %s and %s on rank %s: expected the same on all"
                                .formatted(what, mine, world.rank(), all[rank], rank));
            }
        }
    }

    /** Ranks with different numbers of columns may choose differently; then all use HBM. */
    private static Path agreedPath(Fabric group, Path mine) {
        boolean onChip =
                Arrays.stream(group.exchange(mine.ordinal()))
                        .allMatch(path -> path == Path.SBUF.ordinal());
        return onChip ? Path.SBUF : Path.HBM;
    }

    private static void travel(OperatorBuilder<?, ?> builder, FgccLayout layout, boolean inPlace) {
        if (inPlace) {
            builder.algorithm(Algorithm.DIRECT);
            return;
        }
        boolean onChip = layout.path() == Path.SBUF;
        builder.pingPong(layout.channels());
        builder.algorithm(Algorithm.slicedRing(layout.programs(), layout.channels(), !onChip));
        if (onChip) {
            // A slice is what one channel permutes at a time; on the other path Weft cuts more
            // finely.
            builder.splitsPerRank(layout.programs() * layout.channels());
        }
    }

    /**
     * Gathers and multiplies. Collective over the group. The result is valid until the next call
     * starts.
     *
     * @param lhs this rank's rows of A, [m, K]
     */
    public FgccResult<M> call(M lhs) {
        M mine = layout.loc() == 0 ? place.rows(lhs, 0, 0) : lhs;
        return new FgccResult<>(layout, operator.call(mine).product(), place, operator, () -> {});
    }

    @Override
    public void close() {
        super.close();
        if (group != world) {
            group.close();
        }
    }

    /** Where FGCC keeps the ring fragments of A. */
    public enum Path {
        /** In the on-chip double buffer only; slices of a rank's rows are numbered l * C + c. */
        SBUF,
        /** In two [m, K] buffers in main memory; slices of a rank's rows are numbered c * L + l. */
        HBM;

        /** The source's tiles: at most this many rows of A and of B, and columns of B. */
        private static final long TILE_ROWS = 128;

        private static final long TILE_COLS = 512;

        /** If B does not fit, its blocks are this many tiles of K deep, times a type's bytes. */
        private static final int K_TILES_TIMES_BYTES = 16;

        /**
         * The source's rule. Two thirds of the chip may hold B, double-buffered: all of it, or else
         * a block of it. SBUF is used if the rest holds twice the slice of one program and channel.
         * Sizes count whole tiles.
         *
         * @param slices L x C, by which the m rows of one rank are divided
         * @param k columns of A and rows of B
         * @param n columns of B on this rank
         */
        static Path choose(
                FgccConfig config,
                int slices,
                long m,
                long k,
                long n,
                DType aType,
                DType bType,
                boolean forceHbm) {
            if (forceHbm) {
                return HBM;
            }
            double rows = inTiles(Math.ceilDiv(m, slices), TILE_ROWS);
            double sliceBytes = rows * inTiles(k, TILE_ROWS) * aType.bytes();
            double left = config.onChipBytes() - 2 * rhsBlockBytes(config, k, n, bType);
            return 2 * sliceBytes <= left ? SBUF : HBM;
        }

        /** Bytes of B that are on chip at a time; as a double, which cannot overflow. */
        private static double rhsBlockBytes(FgccConfig config, long k, long n, DType bType) {
            double limit = config.onChipBytes() / 3 * 2;
            double rows = inTiles(k, TILE_ROWS);
            double bytes = rows * inTiles(n, TILE_COLS) * bType.bytes();
            if (2 * bytes <= limit) {
                return bytes;
            }
            double tileCols = Math.min(n, TILE_COLS);
            double colTiles = Math.floor(limit / (rows * tileCols * bType.bytes()));
            double blockCols = tileCols * Math.clamp(colTiles, 1, Math.ceil(n / tileCols));
            int rowTiles = K_TILES_TIMES_BYTES / bType.bytes();
            return Math.min(rows, Math.min(k, TILE_ROWS) * rowTiles) * blockCols * bType.bytes();
        }

        /** The size of the tiles that cover {@code size}; a single tile is just as large. */
        private static double inTiles(long size, long tile) {
            return size <= tile ? size : Math.ceil((double) size / tile) * tile;
        }
    }
}
