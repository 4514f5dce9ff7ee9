package dev.weft.compat;

import dev.weft.cuda.CudaAllGatherMatmul;
import dev.weft.cuda.CudaAllGatherMatmulBuilder;
import dev.weft.cuda.DeviceMatrix;
import dev.weft.cuda.Gpu;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.op.AllGather;
import dev.weft.op.AllGatherMatmul;
import dev.weft.op.AllGatherMatmulBuilder;
import dev.weft.op.OperatorBuilder;
import dev.weft.op.Timeline;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.function.Function;

/**
 * The SBUF-to-SBUF all-gathers: in one call each, or prepared once by {@link #untiled}, {@link
 * #tiled} or {@link #rows} and called many times. Every rank of the world prepares, calls and
 * closes, in the same order; one thread of the rank at a time. The bytes at every rank of a group
 * are the same afterwards. A rank that is in none of the replica groups takes part in these calls
 * too, and gathers alone: it gets back what it gave.
 *
 * <p>Results lie in memory that all ranks of a host can read: {@link #peer} gives those of another
 * rank. A matrix that one of the single calls returns is a copy of its own, which stays valid as
 * long as something refers to it; the forms with {@code out} write into the caller's memory.
 *
 * <p>Arguments that do not fit are refused with their values, and end the call on the other ranks
 * too; as after every failure, the world is of no further use then.
 *
 * @param <M> the type of matrix: {@link Matrix} in host memory, or {@link DeviceMatrix} on a GPU
 */
public final class Sb2sb<M> implements AutoCloseable {

    /** Rows of a tile, and of a tensor that is gathered without tiles, at most. */
    public static final int MAX_TILE_ROWS = 128;

    private final Fabric world;
    private final Fabric group;
    private final Shape shape;
    private final AllGather<M> gather;

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
     * in the order of the rank's group.
     *
     * @param inp H of at most 128 rows, H x W elements of at most 24 MiB
     * @param replicaGroups which ranks gather together; the same on every rank
     * @param tpDegree ranks of this rank's group
     */
    public static Matrix allgatherSb2sb(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree) {
        return copied(allgatherSb2sbShared(world, inp, replicaGroups, tpDegree));
    }

    /** As {@link #allgatherSb2sb(Fabric, Matrix, ReplicaGroups, int)}, into {@code out}. */
    public static void allgatherSb2sb(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree, Matrix out) {
        into(out, inp, untiled(world, inp, replicaGroups, tpDegree));
    }

    /**
     * As {@link #allgatherSb2sb(Fabric, Matrix, ReplicaGroups, int)}; the result stays where the
     * group's other ranks can read it, until what is returned is closed, by all ranks.
     */
    public static Sb2sb<Matrix> allgatherSb2sbShared(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree) {
        return called(inp, untiled(world, inp, replicaGroups, tpDegree));
    }

    /** As {@link #allgatherSb2sbShared(Fabric, Matrix, ReplicaGroups, int)}, on a GPU. */
    public static Sb2sb<DeviceMatrix> allgatherSb2sbShared(
            Fabric world, Gpu gpu, DeviceMatrix inp, ReplicaGroups replicaGroups, int tpDegree) {
        return called(
                inp,
                untiled(
                        world,
                        gpu,
                        inp.rows(),
                        inp.cols(),
                        inp.dtype(),
                        replicaGroups,
                        tpDegree,
                        Sb2sbConfig.DEFAULT));
    }

    /**
     * Gathers larger tensors along the last dimension, in tiles of min(M, 128) rows: [M, K] on each
     * rank become [M, K x tpDegree], in the order of the rank's group.
     *
     * @param inp M of at most 128 rows or a multiple of 128
     * @param lnc programs of each rank, which share its tiles in equal runs and write to one result
     *     side by side. With several, {@code inp} must not belong to one thread
     */
    public static Matrix allgatherSb2sbTiled(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree, int lnc) {
        return copied(allgatherSb2sbTiledShared(world, inp, replicaGroups, tpDegree, lnc));
    }

    /** As {@link #allgatherSb2sbTiled(Fabric, Matrix, ReplicaGroups, int, int)}, into a matrix. */
    public static void allgatherSb2sbTiled(
            Fabric world,
            Matrix inp,
            ReplicaGroups replicaGroups,
            int tpDegree,
            int lnc,
            Matrix out) {
        into(out, inp, tiled(world, inp, replicaGroups, tpDegree, lnc));
    }

    /** As {@link #allgatherSb2sbShared(Fabric, Matrix, ReplicaGroups, int)}, in tiles. */
    public static Sb2sb<Matrix> allgatherSb2sbTiledShared(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree, int lnc) {
        return called(inp, tiled(world, inp, replicaGroups, tpDegree, lnc));
    }

    /** As {@link #allgatherSb2sbTiledShared}, on a GPU; programs are streams there. */
    public static Sb2sb<DeviceMatrix> allgatherSb2sbTiledShared(
            Fabric world,
            Gpu gpu,
            DeviceMatrix inp,
            ReplicaGroups replicaGroups,
            int tpDegree,
            int lnc) {
        return called(
                inp,
                tiled(
                        world,
                        gpu,
                        inp.rows(),
                        inp.cols(),
                        inp.dtype(),
                        replicaGroups,
                        tpDegree,
                        lnc,
                        Sb2sbConfig.DEFAULT));
    }

    /** The sibling that puts shard below shard: [rows of rank r, K] become [all rows, K]. */
    public static Matrix allgatherRows(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree) {
        return copied(allgatherRowsShared(world, inp, replicaGroups, tpDegree));
    }

    /** As {@link #allgatherRows(Fabric, Matrix, ReplicaGroups, int)}, into {@code out}. */
    public static void allgatherRows(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree, Matrix out) {
        into(out, inp, rows(world, inp, replicaGroups, tpDegree));
    }

    /** As {@link #allgatherSb2sbShared(Fabric, Matrix, ReplicaGroups, int)}, shard below shard. */
    public static Sb2sb<Matrix> allgatherRowsShared(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree) {
        return called(inp, rows(world, inp, replicaGroups, tpDegree));
    }

    /** As {@link #allgatherRowsShared(Fabric, Matrix, ReplicaGroups, int)}, on a GPU. */
    public static Sb2sb<DeviceMatrix> allgatherRowsShared(
            Fabric world, Gpu gpu, DeviceMatrix inp, ReplicaGroups replicaGroups, int tpDegree) {
        return called(
                inp,
                rows(
                        world,
                        gpu,
                        inp.rows(),
                        inp.cols(),
                        inp.dtype(),
                        replicaGroups,
                        tpDegree,
                        Sb2sbConfig.DEFAULT));
    }

    /** Gathers once and leaves open what holds the result. */
    private static <M> Sb2sb<M> called(M inp, Sb2sb<M> gather) {
        try {
            gather.call(inp);
            return gather;
        } catch (RuntimeException | Error e) {
            gather.close();
            throw e;
        }
    }

    private static Matrix copied(Sb2sb<Matrix> called) {
        try (called) {
            Matrix result = called.result();
            Matrix copy =
                    Matrix.allocate(Arena.ofAuto(), result.dtype(), result.rows(), result.cols());
            copy.copyFrom(result);
            return copy;
        }
    }

    private static void into(Matrix out, Matrix inp, Sb2sb<Matrix> gather) {
        try (gather) {
            gather.checkOrFail("out", out, gather.outRows(), gather.outCols());
            out.copyFrom(gather.call(inp));
        }
    }

    private static Sb2sb<Matrix> untiled(
            Fabric world, Matrix inp, ReplicaGroups groups, int tpDegree) {
        return untiled(
                world, inp.rows(), inp.cols(), inp.dtype(), groups, tpDegree, Sb2sbConfig.DEFAULT);
    }

    private static Sb2sb<Matrix> tiled(
            Fabric world, Matrix inp, ReplicaGroups groups, int tpDegree, int lnc) {
        DType type = inp.dtype();
        return tiled(
                world, inp.rows(), inp.cols(), type, groups, tpDegree, lnc, Sb2sbConfig.DEFAULT);
    }

    private static Sb2sb<Matrix> rows(
            Fabric world, Matrix inp, ReplicaGroups groups, int tpDegree) {
        return rows(
                world, inp.rows(), inp.cols(), inp.dtype(), groups, tpDegree, Sb2sbConfig.DEFAULT);
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
        return untiled(world, Sb2sb::onHost, h, w, dtype, replicaGroups, tpDegree, config);
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
        return untiled(world, onGpu(gpu), h, w, dtype, replicaGroups, tpDegree, config);
    }

    private static AllGatherMatmulBuilder onHost(Fabric group) {
        return AllGatherMatmul.on(group).sharedResults();
    }

    private static Function<Fabric, CudaAllGatherMatmulBuilder> onGpu(Gpu gpu) {
        return group -> CudaAllGatherMatmul.on(group, gpu).sharedResults();
    }

    private static <M, B extends OperatorBuilder<M, B>> Sb2sb<M> untiled(
            Fabric world,
            Function<Fabric, B> builder,
            long h,
            long w,
            DType dtype,
            ReplicaGroups replicaGroups,
            int tpDegree,
            Sb2sbConfig config) {
        return prepare(
                world,
                replicaGroups,
                tpDegree,
                () -> {
                    Sb2sbRules.sizes(h, w);
                    Sb2sbRules.partitions(h);
                    Sb2sbRules.capacity(h, w, dtype, config.onChipBytes());
                },
                group ->
                        new Sb2sb<>(
                                world,
                                group,
                                new Shape(h, w, dtype, h, w * group.size(), 1),
                                AllGather.columns(
                                        builder.apply(group), h, w, dtype, config.algorithm(), h)));
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
        return tiled(world, Sb2sb::onHost, m, k, dtype, replicaGroups, tpDegree, lnc, config);
    }

    /** Collective: {@link #allgatherSb2sbTiled} of [m, k] on a GPU; programs are streams there. */
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
        return tiled(world, onGpu(gpu), m, k, dtype, replicaGroups, tpDegree, lnc, config);
    }

    private static <M, B extends OperatorBuilder<M, B>> Sb2sb<M> tiled(
            Fabric world,
            Function<Fabric, B> builder,
            long m,
            long k,
            DType dtype,
            ReplicaGroups replicaGroups,
            int tpDegree,
            int lnc,
            Sb2sbConfig config) {
        return prepare(
                world,
                replicaGroups,
                tpDegree,
                () -> {
                    Sb2sbRules.sizes(m, k);
                    Sb2sbRules.tiles(m, lnc);
                },
                group -> {
                    int programs = Sb2sbRules.programs(m, lnc);
                    B operator = builder.apply(group);
                    boolean onHost = operator instanceof AllGatherMatmulBuilder;
                    return new Sb2sb<>(
                            world,
                            group,
                            new Shape(m, k, dtype, m, k * group.size(), programs),
                            AllGather.columns(
                                    operator,
                                    m,
                                    k,
                                    dtype,
                                    config.byPrograms(programs, onHost && group.sharesMemory()),
                                    Sb2sbRules.tileRows(m)));
                });
    }

    /** Collective: {@link #allgatherRows}; the ranks of a group may own unlike many rows. */
    public static Sb2sb<Matrix> rows(
            Fabric world,
            long rows,
            long cols,
            DType dtype,
            ReplicaGroups replicaGroups,
            int tpDegree,
            Sb2sbConfig config) {
        return rows(world, Sb2sb::onHost, rows, cols, dtype, replicaGroups, tpDegree, config);
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
        return rows(world, onGpu(gpu), rows, cols, dtype, replicaGroups, tpDegree, config);
    }

    private static <M, B extends OperatorBuilder<M, B>> Sb2sb<M> rows(
            Fabric world,
            Function<Fabric, B> builder,
            long rows,
            long cols,
            DType dtype,
            ReplicaGroups replicaGroups,
            int tpDegree,
            Sb2sbConfig config) {
        return prepare(
                world,
                replicaGroups,
                tpDegree,
                () -> Sb2sbRules.sizes(Math.max(1, rows), cols),
                group -> {
                    Shards shards = Shards.of(group.exchange(rows));
                    return new Sb2sb<>(
                            world,
                            group,
                            new Shape(rows, cols, dtype, shards.totalRows(), cols, 1),
                            AllGather.rows(
                                    builder.apply(group), shards, cols, dtype, config.algorithm()));
                });
    }

    private static <M> Sb2sb<M> prepare(
            Fabric world,
            ReplicaGroups replicaGroups,
            int tpDegree,
            Runnable rules,
            Function<Fabric, Sb2sb<M>> preparation) {
        Sb2sbRules.world(world);
        Fabric group = world;
        try {
            Sb2sbRules.groups(world, replicaGroups, tpDegree);
            rules.run();
            group = replicaGroups.isAll(world.size()) ? world : world.split(replicaGroups);
            return preparation.apply(group);
        } catch (RuntimeException | Error e) {
            // Peers whose arguments are fine must not wait for this rank.
            world.fail(e);
            if (group != world) {
                group.close();
            }
            throw e;
        }
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

    /** What the latest call did on this rank; of several programs, each with tracks of its own. */
    public Timeline timeline() {
        return gather.timeline();
    }

    /**
     * The place of the next call's input, for producers that write it there themselves; given to
     * {@link #call} it is not copied. Waits for peers that are a call behind.
     */
    public M nextInput() {
        return gather.nextShard();
    }

    /**
     * Gathers. Collective. The result is a view of memory that the peers can read, not to be
     * written; it holds until the next call.
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
     * The result of the latest call at the group's rank {@code rank}, for ranks of one host, or on
     * GPUs that reach each other. Waits until that rank has it whole. It holds until this rank
     * starts its next call: see {@link dev.weft.op.Operator#peerGathered}.
     */
    public M peer(int rank) {
        return gather.peer(rank);
    }

    /** The peers are about to gather: they learn at once that this rank does not. */
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

    /** Ends the workers and frees all memory. */
    @Override
    public void close() {
        gather.close();
        if (group != world) {
            group.close();
        }
    }
}
