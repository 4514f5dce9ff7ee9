package dev.weft.compat;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.cuda.op.CudaAllGatherMatmul;
import dev.weft.cuda.op.CudaAllGatherMatmulBuilder;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.op.AllGather;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.OperatorBuilder;
import dev.weft.op.Timeline;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.function.Function;

/**
 * The SBUF-to-SBUF all-gathers: in one call each, or prepared once by {@link #untiled}, {@link
 * #tiled} or {@link #rows} and called many times. Every rank of the world prepares, calls and
 * closes, in the same order, with one thread at a time. Afterwards, every rank of a group has the
 * same bytes. A rank that is in none of the replica groups makes these calls too, and gathers
 * alone: it gets back what it gave.
 *
 * <p>Results are in memory that all ranks of a host can read: {@link #peer} gives another rank's.
 * What a single call returns holds its {@link #result} until it is closed; the forms with {@code
 * out} write into the caller's memory instead.
 *
 * <p>Arguments that do not fit are refused with their values, and end the call on the other ranks
 * too. As after every failure, the world can then not be used any more.
 *
 * @param <M> the type of matrix: {@link Matrix} in host memory, or {@link DeviceMatrix} on a GPU
 */
public final class Sb2sb<M> implements AutoCloseable {

    /** The most rows of a tile, and of a tensor that is gathered without tiles. */
    public static final int MAX_TILE_ROWS = 128;

    private final Fabric world;
    private final Fabric group;
    private final Shape shape;
    private final AllGather<M> gather;

    /** Where a rank's shard goes in the result. */
    private enum Kind {
        BESIDE,
        BESIDE_IN_TILES,
        BELOW
    }

    /** What a rank asks for. */
    private record Wanted(
            Kind kind,
            long rows,
            long cols,
            DType dtype,
            ReplicaGroups groups,
            int tpDegree,
            int lnc,
            Sb2sbConfig config) {

        /** The request of a single call. */
        static Wanted once(Kind kind, Matrix inp, ReplicaGroups groups, int tpDegree, int lnc) {
            Sb2sbConfig config = Sb2sbConfig.DEFAULT;
            DType type = inp.dtype();
            return new Wanted(kind, inp.rows(), inp.cols(), type, groups, tpDegree, lnc, config);
        }

        /** The request of a single call on a GPU. */
        static Wanted once(
                Kind kind, DeviceMatrix inp, ReplicaGroups groups, int tpDegree, int lnc) {
            Sb2sbConfig config = Sb2sbConfig.DEFAULT;
            DType type = inp.dtype();
            return new Wanted(kind, inp.rows(), inp.cols(), type, groups, tpDegree, lnc, config);
        }

        void check() {
            Sb2sbRules.sizes(kind == Kind.BELOW ? Math.max(1, rows) : rows, cols);
            switch (kind) {
                case BESIDE -> {
                    Sb2sbRules.partitions(rows);
                    Sb2sbRules.capacity(rows, cols, dtype, config.onChipBytes());
                }
                case BESIDE_IN_TILES -> Sb2sbRules.tiles(rows, lnc);
                case BELOW -> {}
            }
        }
    }

    /** What each rank gives and gets, and which programs share the tiles. */
    private record Shape(
            long rows, long cols, DType dtype, long outRows, long outCols, int programs) {}

    private Sb2sb(Fabric world, Fabric group, Shape shape, AllGather<M> gather) {
        this.world = world;
        this.group = group;
        this.shape = shape;
        this.gather = gather;
    }

    /**
     * Gathers small tensors along the last dimension: [H, W] on each rank become [H, W x tpDegree],
     * in the order of the rank's group. As in the source, the group's other ranks can read the
     * result, until all of them close what is returned.
     *
     * @param inp H of at most 128 rows, H x W elements of at most 24 MiB
     * @param replicaGroups which ranks gather together; the same on every rank
     * @param tpDegree ranks of this rank's group
     */
    public static Sb2sb<Matrix> allgatherSb2sb(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree) {
        return called(world, inp, Wanted.once(Kind.BESIDE, inp, replicaGroups, tpDegree, 1));
    }

    /** Like {@link #allgatherSb2sb(Fabric, Matrix, ReplicaGroups, int)}, into {@code out}. */
    public static void allgatherSb2sb(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree, Matrix out) {
        into(out, world, inp, Wanted.once(Kind.BESIDE, inp, replicaGroups, tpDegree, 1));
    }

    /** Like {@link #allgatherSb2sb(Fabric, Matrix, ReplicaGroups, int)}, on a GPU. */
    public static Sb2sb<DeviceMatrix> allgatherSb2sb(
            Fabric world, Gpu gpu, DeviceMatrix inp, ReplicaGroups replicaGroups, int tpDegree) {
        return called(world, gpu, inp, Wanted.once(Kind.BESIDE, inp, replicaGroups, tpDegree, 1));
    }

    /**
     * Gathers larger tensors along the last dimension, in tiles of min(M, 128) rows: [M, K] on each
     * rank become [M, K x tpDegree], in the order of the rank's group.
     *
     * @param inp M of at most 128 rows or a multiple of 128
     * @param lnc programs of each rank, which share its tiles in equal runs and write to one result
     *     side by side. With several, {@code inp} must not be confined to one thread
     */
    public static Sb2sb<Matrix> allgatherSb2sbTiled(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree, int lnc) {
        return called(
                world, inp, Wanted.once(Kind.BESIDE_IN_TILES, inp, replicaGroups, tpDegree, lnc));
    }

    /** {@link #allgatherSb2sbTiled(Fabric, Matrix, ReplicaGroups, int, int)} by one program. */
    public static Sb2sb<Matrix> allgatherSb2sbTiled(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree) {
        return allgatherSb2sbTiled(world, inp, replicaGroups, tpDegree, 1);
    }

    /**
     * Writes {@link #allgatherSb2sbTiled(Fabric, Matrix, ReplicaGroups, int, int)} to {@code out}.
     */
    public static void allgatherSb2sbTiled(
            Fabric world,
            Matrix inp,
            ReplicaGroups replicaGroups,
            int tpDegree,
            int lnc,
            Matrix out) {
        into(out, world, inp, Wanted.once(Kind.BESIDE_IN_TILES, inp, replicaGroups, tpDegree, lnc));
    }

    /** Like {@link #allgatherSb2sbTiled}, on a GPU, where programs are streams. */
    public static Sb2sb<DeviceMatrix> allgatherSb2sbTiled(
            Fabric world,
            Gpu gpu,
            DeviceMatrix inp,
            ReplicaGroups replicaGroups,
            int tpDegree,
            int lnc) {
        return called(
                world,
                gpu,
                inp,
                Wanted.once(Kind.BESIDE_IN_TILES, inp, replicaGroups, tpDegree, lnc));
    }

    /** The variant that puts shard below shard: [rows of rank r, K] become [all rows, K]. */
    public static Sb2sb<Matrix> allgatherRows(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree) {
        return called(world, inp, Wanted.once(Kind.BELOW, inp, replicaGroups, tpDegree, 1));
    }

    /** Like {@link #allgatherRows(Fabric, Matrix, ReplicaGroups, int)}, into {@code out}. */
    public static void allgatherRows(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree, Matrix out) {
        into(out, world, inp, Wanted.once(Kind.BELOW, inp, replicaGroups, tpDegree, 1));
    }

    /** Like {@link #allgatherRows(Fabric, Matrix, ReplicaGroups, int)}, on a GPU. */
    public static Sb2sb<DeviceMatrix> allgatherRows(
            Fabric world, Gpu gpu, DeviceMatrix inp, ReplicaGroups replicaGroups, int tpDegree) {
        return called(world, gpu, inp, Wanted.once(Kind.BELOW, inp, replicaGroups, tpDegree, 1));
    }

    private static Sb2sb<Matrix> called(Fabric world, Matrix inp, Wanted wanted) {
        return called(inp, prepare(world, Sb2sb::onHost, wanted));
    }

    private static Sb2sb<DeviceMatrix> called(
            Fabric world, Gpu gpu, DeviceMatrix inp, Wanted wanted) {
        return called(inp, prepare(world, onGpu(gpu), wanted));
    }

    /** Gathers once and returns what holds the result, still open. */
    private static <M> Sb2sb<M> called(M inp, Sb2sb<M> gather) {
        try {
            gather.call(inp);
            return gather;
        } catch (RuntimeException | Error e) {
            gather.close();
            throw e;
        }
    }

    private static void into(Matrix out, Fabric world, Matrix inp, Wanted wanted) {
        try (Sb2sb<Matrix> gather = prepare(world, Sb2sb::onHost, wanted)) {
            gather.checkOrFail("out", out, gather.outRows(), gather.outCols());
            out.copyFrom(gather.call(inp));
        }
    }

    /** Collective: {@link #allgatherSb2sb} of [h, w]. */
    public static Sb2sb<Matrix> untiled(
            Fabric world,
            long h,
            long w,
            DType dtype,
            ReplicaGroups replicaGroups,
            int tpDegree,
            Sb2sbConfig config) {
        return prepare(
                world,
                Sb2sb::onHost,
                new Wanted(Kind.BESIDE, h, w, dtype, replicaGroups, tpDegree, 1, config));
    }

    /** Collective: {@link #allgatherSb2sb} of [h, w] on a GPU. */
    public static Sb2sb<DeviceMatrix> untiled(
            Fabric world,
            Gpu gpu,
            long h,
            long w,
            DType dtype,
            ReplicaGroups replicaGroups,
            int tpDegree,
            Sb2sbConfig config) {
        return prepare(
                world,
                onGpu(gpu),
                new Wanted(Kind.BESIDE, h, w, dtype, replicaGroups, tpDegree, 1, config));
    }

    /** Collective: {@link #allgatherSb2sbTiled} of [m, k] by {@code lnc} programs. */
    public static Sb2sb<Matrix> tiled(
            Fabric world,
            long m,
            long k,
            DType dtype,
            ReplicaGroups replicaGroups,
            int tpDegree,
            int lnc,
            Sb2sbConfig config) {
        return prepare(
                world,
                Sb2sb::onHost,
                new Wanted(
                        Kind.BESIDE_IN_TILES, m, k, dtype, replicaGroups, tpDegree, lnc, config));
    }

    /** Collective: {@link #allgatherSb2sbTiled} of [m, k] on a GPU, where programs are streams. */
    public static Sb2sb<DeviceMatrix> tiled(
            Fabric world,
            Gpu gpu,
            long m,
            long k,
            DType dtype,
            ReplicaGroups replicaGroups,
            int tpDegree,
            int lnc,
            Sb2sbConfig config) {
        return prepare(
                world,
                onGpu(gpu),
                new Wanted(
                        Kind.BESIDE_IN_TILES, m, k, dtype, replicaGroups, tpDegree, lnc, config));
    }

    /** Collective: {@link #allgatherRows}; ranks of a group may own different numbers of rows. */
    public static Sb2sb<Matrix> rows(
            Fabric world,
            long rows,
            long cols,
            DType dtype,
            ReplicaGroups replicaGroups,
            int tpDegree,
            Sb2sbConfig config) {
        return prepare(
                world,
                Sb2sb::onHost,
                new Wanted(Kind.BELOW, rows, cols, dtype, replicaGroups, tpDegree, 1, config));
    }

    /** Collective: {@link #allgatherRows} on a GPU. */
    public static Sb2sb<DeviceMatrix> rows(
            Fabric world,
            Gpu gpu,
            long rows,
            long cols,
            DType dtype,
            ReplicaGroups replicaGroups,
            int tpDegree,
            Sb2sbConfig config) {
        return prepare(
                world,
                onGpu(gpu),
                new Wanted(Kind.BELOW, rows, cols, dtype, replicaGroups, tpDegree, 1, config));
    }

    private static AllGatherMatmulBuilder onHost(Fabric group) {
        return AllGatherMatmul.on(group).sharedResults();
    }

    private static Function<Fabric, CudaAllGatherMatmulBuilder> onGpu(Gpu gpu) {
        return group -> CudaAllGatherMatmul.on(group, gpu).sharedResults();
    }

    private static <M, B extends OperatorBuilder<M, B>> Sb2sb<M> prepare(
            Fabric world, Function<Fabric, B> operators, Wanted wanted) {
        Sb2sbRules.world(world);
        ReplicaGroups groups = wanted.groups();
        Fabric group = world;
        try {
            Sb2sbRules.groups(world, groups, wanted.tpDegree());
            wanted.check();
            group = groups.isAll(world.size()) ? world : world.split(groups);
            return prepare(world, group, operators.apply(group), wanted);
        } catch (RuntimeException | Error e) {
            // Peers with valid arguments must not wait for this rank.
            world.fail(e);
            if (group != world) {
                group.close();
            }
            throw e;
        }
    }

    private static <M, B extends OperatorBuilder<M, B>> Sb2sb<M> prepare(
            Fabric world, Fabric group, B operator, Wanted wanted) {
        long rows = wanted.rows();
        long cols = wanted.cols();
        DType dtype = wanted.dtype();
        Sb2sbConfig config = wanted.config();
        if (wanted.kind() == Kind.BELOW) {
            Shards shards = Shards.of(group.exchange(rows));
            Shape shape = new Shape(rows, cols, dtype, shards.totalRows(), cols, 1);
            return new Sb2sb<>(
                    world,
                    group,
                    shape,
                    AllGather.rows(operator, shards, cols, dtype, config.algorithm()));
        }
        boolean tiled = wanted.kind() == Kind.BESIDE_IN_TILES;
        int programs = tiled ? Sb2sbRules.programs(rows, wanted.lnc()) : 1;
        boolean inPlace = operator instanceof AllGatherMatmulBuilder && group.sharesMemory();
        PlanWriter algorithm = config.byPrograms(programs, inPlace);
        long tileRows = tiled ? Sb2sbRules.tileRows(rows) : rows;
        return new Sb2sb<>(
                world,
                group,
                new Shape(rows, cols, dtype, rows, cols * group.size(), programs),
                AllGather.columns(operator, rows, cols, dtype, algorithm, tileRows));
    }

    /** Rows of the result. */
    public long outRows() {
        return shape.outRows();
    }

    /** Columns of the result. */
    public long outCols() {
        return shape.outCols();
    }

    /** Programs of this rank that have tiles. */
    public int programs() {
        return shape.programs();
    }

    /** What every call does on this rank; its chunks are the tiles. */
    public RankPlan plan() {
        return gather.plan();
    }

    /** What the latest call did on this rank; each of several programs has its own tracks. */
    public Timeline timeline() {
        return gather.timeline();
    }

    /**
     * The next call's input, for producers that write it in place: {@link #call} does not copy it.
     * Waits for peers that are a call behind.
     */
    public M nextInput() {
        return gather.nextShard();
    }

    /**
     * Gathers. Collective. The result is a read-only view of memory that the peers can read; it is
     * valid until the next call.
     */
    public M call(M inp) {
        if (inp instanceof Matrix matrix) {
            checkOrFail("inp", matrix, shape.rows(), shape.cols());
        }
        return gather.call(inp);
    }

    /** What the latest call returned. */
    public M result() {
        return gather.result();
    }

    /**
     * The latest call's result on the group's rank {@code rank}, for ranks of one host, or on GPUs
     * that reach each other. Waits until it is complete there. It is valid until this rank starts
     * its next call: see {@link dev.weft.op.Operator#peerGathered}.
     */
    public M peer(int rank) {
        return gather.peer(rank);
    }

    /** Tells the peers at once if this rank will not gather. */
    private void checkOrFail(String name, Matrix matrix, long rows, long cols) {
        try {
            check(name, matrix, rows, cols);
        } catch (IllegalArgumentException e) {
            group.fail(e);
            throw e;
        }
    }

    private void check(String name, Matrix matrix, long rows, long cols) {
        if (matrix.rows() != rows || matrix.cols() != cols || matrix.dtype() != shape.dtype()) {
            throw new IllegalArgumentException(
                    "%s is %s: expected [%s, %s] %s"
                            .formatted(name, matrix.describe(), rows, cols, shape.dtype().label()));
        }
    }

    /** Stops the workers and frees all memory. */
    @Override
    public void close() {
        gather.close();
        if (group != world) {
            group.close();
        }
    }
}
