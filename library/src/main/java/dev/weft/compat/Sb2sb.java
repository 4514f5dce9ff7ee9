package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.op.AllGather;
import dev.weft.op.Timeline;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * The SBUF-to-SBUF all-gathers: in one call each, which prepares, gathers and frees, or prepared
 * once by {@link #untiled}, {@link #tiled} or {@link #rows} and called many times. Every rank of
 * the world prepares, calls and closes, in the same order; one thread of the rank at a time. The
 * bytes at every rank of a group are the same afterwards.
 *
 * <p>A matrix that one of the single calls returns is fresh and stays valid as long as something
 * refers to it; the forms with {@code out} write into the caller's memory instead. Arguments that
 * do not fit are refused with their values, and end the call on the other ranks too; as after every
 * failure, the world is of no further use then.
 *
 * <p>A program is an operator with workers of its own; program p of P gathers the p-th P-th of the
 * rows. A tile is a chunk, the unit that travels.
 */
public final class Sb2sb implements AutoCloseable {

    /** Rows of a tile, and of a tensor that is gathered without tiles, at most. */
    public static final int MAX_TILE_ROWS = 128;

    private final Fabric world;
    private final Fabric group;
    private final Shape shape;
    private final List<AllGather<Matrix>> programs;
    private final Sb2sbPrograms runner;

    /** What each rank gives and gets. */
    private record Shape(long rows, long cols, DType dtype, long outRows, long outCols) {}

    private Sb2sb(Fabric world, Fabric group, Shape shape, List<AllGather<Matrix>> programs) {
        this.world = world;
        this.group = group;
        this.shape = shape;
        this.programs = programs;
        this.runner = new Sb2sbPrograms(programs, shape.dtype(), shape.outRows(), shape.outCols());
    }

    /**
     * Gathers small tensors along the last dimension: [H, W] on each rank become [H, W x tpDegree],
     * in rank order.
     *
     * @param inp H of at most 128 rows, H x W elements of at most 24 MiB
     * @param replicaGroups groups of consecutive ranks that gather on their own
     * @param tpDegree ranks of one group
     */
    public static Matrix allgatherSb2sb(Fabric world, Matrix inp, int replicaGroups, int tpDegree) {
        return untiled(world, inp, replicaGroups, tpDegree).once(inp, null);
    }

    /** As {@link #allgatherSb2sb(Fabric, Matrix, int, int)}, into {@code out}. */
    public static void allgatherSb2sb(
            Fabric world, Matrix inp, int replicaGroups, int tpDegree, Matrix out) {
        untiled(world, inp, replicaGroups, tpDegree).once(inp, out);
    }

    /**
     * Gathers larger tensors along the last dimension, in tiles of min(M, 128) rows: [M, K] on each
     * rank become [M, K x tpDegree], in rank order.
     *
     * @param inp M of at most 128 rows or a multiple of 128
     * @param lnc programs of each rank, each with threads of its own; the tiles are dealt to them
     *     in equal runs. With several, {@code inp} and {@code out} must not belong to one thread
     */
    public static Matrix allgatherSb2sbTiled(
            Fabric world, Matrix inp, int replicaGroups, int tpDegree, int lnc) {
        return tiled(world, inp, replicaGroups, tpDegree, lnc).once(inp, null);
    }

    /** As {@link #allgatherSb2sbTiled(Fabric, Matrix, int, int, int)}, into {@code out}. */
    public static void allgatherSb2sbTiled(
            Fabric world, Matrix inp, int replicaGroups, int tpDegree, int lnc, Matrix out) {
        tiled(world, inp, replicaGroups, tpDegree, lnc).once(inp, out);
    }

    /** The sibling that puts shard below shard: [rows of rank r, K] become [all rows, K]. */
    public static Matrix allgatherRows(Fabric world, Matrix inp, int replicaGroups, int tpDegree) {
        return rows(world, inp, replicaGroups, tpDegree).once(inp, null);
    }

    /** As {@link #allgatherRows(Fabric, Matrix, int, int)}, into {@code out}. */
    public static void allgatherRows(
            Fabric world, Matrix inp, int replicaGroups, int tpDegree, Matrix out) {
        rows(world, inp, replicaGroups, tpDegree).once(inp, out);
    }

    /** Gathers into {@code outOrNull}, or into fresh memory, and closes. */
    private Matrix once(Matrix inp, Matrix outOrNull) {
        try (Sb2sb gather = this) {
            Matrix out =
                    outOrNull == null
                            ? Matrix.allocate(Arena.ofAuto(), shape.dtype(), outRows(), outCols())
                            : outOrNull;
            gather.call(inp, out);
            return out;
        }
    }

    private static Sb2sb untiled(Fabric world, Matrix inp, int groups, int tpDegree) {
        return untiled(
                world, inp.rows(), inp.cols(), inp.dtype(), groups, tpDegree, Sb2sbConfig.DEFAULT);
    }

    private static Sb2sb tiled(Fabric world, Matrix inp, int groups, int tpDegree, int lnc) {
        DType type = inp.dtype();
        return tiled(
                world, inp.rows(), inp.cols(), type, groups, tpDegree, lnc, Sb2sbConfig.DEFAULT);
    }

    private static Sb2sb rows(Fabric world, Matrix inp, int groups, int tpDegree) {
        return rows(
                world, inp.rows(), inp.cols(), inp.dtype(), groups, tpDegree, Sb2sbConfig.DEFAULT);
    }

    /** Collective: {@link #allgatherSb2sb} of [h, w]. */
    public static Sb2sb untiled(
            Fabric world,
            long h,
            long w,
            DType dtype,
            int replicaGroups,
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
                group -> {
                    AllGather<Matrix> all =
                            AllGather.columns(group, h, w, dtype, config.algorithm(), h);
                    Shape shape = new Shape(h, w, dtype, h, w * tpDegree);
                    return new Sb2sb(world, group, shape, List.of(all));
                });
    }

    /** Collective: {@link #allgatherSb2sbTiled} of [m, k] by {@code lnc} programs. */
    public static Sb2sb tiled(
            Fabric world,
            long m,
            long k,
            DType dtype,
            int replicaGroups,
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
                    int count = Sb2sbRules.programs(m, lnc);
                    List<AllGather<Matrix>> programs = new ArrayList<>();
                    try {
                        for (int p = 0; p < count; p++) {
                            programs.add(
                                    AllGather.columns(
                                            group,
                                            m / count,
                                            k,
                                            dtype,
                                            config.algorithm(),
                                            Sb2sbRules.tileRows(m)));
                        }
                        Shape shape = new Shape(m, k, dtype, m, k * tpDegree);
                        return new Sb2sb(world, group, shape, programs);
                    } catch (RuntimeException | Error e) {
                        closeAll(programs);
                        throw e;
                    }
                });
    }

    /** Collective: {@link #allgatherRows}; the ranks of a group may own unlike many rows. */
    public static Sb2sb rows(
            Fabric world,
            long rows,
            long cols,
            DType dtype,
            int replicaGroups,
            int tpDegree,
            Sb2sbConfig config) {
        return prepare(
                world,
                replicaGroups,
                tpDegree,
                () -> Sb2sbRules.sizes(Math.max(1, rows), cols),
                group -> {
                    Shards shards = Shards.of(group.exchange(rows));
                    AllGather<Matrix> all =
                            AllGather.rows(group, shards, cols, dtype, config.algorithm());
                    Shape shape = new Shape(rows, cols, dtype, shards.totalRows(), cols);
                    return new Sb2sb(world, group, shape, List.of(all));
                });
    }

    private static Sb2sb prepare(
            Fabric world,
            int replicaGroups,
            int tpDegree,
            Runnable rules,
            Function<Fabric, Sb2sb> preparation) {
        Sb2sbRules.world(world);
        Fabric group = world;
        try {
            Sb2sbRules.groups(world.size(), replicaGroups, tpDegree);
            rules.run();
            group = replicaGroups == 1 ? world : world.split(replicaGroups);
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
        return programs.size();
    }

    /** What every call of a program does on this rank; its chunks are its tiles. */
    public RankPlan plan(int program) {
        return programs.get(program).plan();
    }

    /** What the latest call did on this rank; of several programs, each with tracks of its own. */
    public Timeline timeline() {
        if (programs.size() == 1) {
            return programs.getFirst().timeline();
        }
        List<Timeline.Track> tracks = new ArrayList<>();
        long startNs = Long.MAX_VALUE;
        for (AllGather<Matrix> program : programs) {
            startNs = Math.min(startNs, program.timeline().startNs());
        }
        long rowsOfOne = shape.rows() / programs.size();
        int chunksOfOne = programs.getFirst().plan().chunks().count(0);
        long elapsedNs = 0;
        for (int p = 0; p < programs.size(); p++) {
            Timeline own = programs.get(p).timeline();
            long lateNs = own.startNs() - startNs;
            elapsedNs = Math.max(elapsedNs, lateNs + own.elapsedNs());
            for (Timeline.Track track : own.tracks()) {
                tracks.add(track.asPartOf("program-" + p, lateNs, p * rowsOfOne, p * chunksOfOne));
            }
        }
        return new Timeline(programs.getFirst().timeline().rank(), startNs, elapsedNs, tracks);
    }

    /** Gathers. Collective. The result is a view of own memory that holds until the next call. */
    public Matrix call(Matrix inp) {
        checkOrFail("inp", inp, shape.rows(), shape.cols());
        return runner.call(inp, null);
    }

    /** Gathers into {@code out}, which is the caller's. Collective. */
    public void call(Matrix inp, Matrix out) {
        checkOrFail("inp", inp, shape.rows(), shape.cols());
        checkOrFail("out", out, shape.outRows(), shape.outCols());
        runner.call(inp, out);
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

    private static void closeAll(List<AllGather<Matrix>> programs) {
        programs.forEach(AllGather::close);
    }

    /** Ends the workers and frees all memory. */
    @Override
    public void close() {
        runner.close();
        closeAll(programs);
        if (group != world) {
            group.close();
        }
    }
}
