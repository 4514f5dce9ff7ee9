package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.op.AllGather;
import dev.weft.op.Timeline;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;

/**
 * A gather of {@link Sb2sb}, prepared once and called many times. Every rank of the world prepares,
 * calls and closes it, in the same order; one thread of the rank at a time.
 *
 * <p>A program is an operator with workers of its own; program p of P gathers the p-th P-th of the
 * rows. A tile is a chunk, the unit that travels.
 */
public final class Sb2sbGather implements AutoCloseable {

    /** Rows of a tile, and of a tensor that is gathered without tiles, at most. */
    public static final int MAX_TILE_ROWS = 128;

    private final Fabric world;
    private final Fabric group;
    private final Shape shape;
    private final AllGather[] programs;
    private final Sb2sbPrograms runner;

    /** What each rank gives and gets. */
    private record Shape(long rows, long cols, DType dtype, long outRows, long outCols) {}

    private Sb2sbGather(Fabric world, Fabric group, Shape shape, AllGather[] programs) {
        this.world = world;
        this.group = group;
        this.shape = shape;
        this.programs = programs;
        this.runner = new Sb2sbPrograms(programs, shape.dtype(), shape.outRows(), shape.outCols());
    }

    /** Collective: {@link Sb2sb#allgatherSb2sb} of [h, w]. */
    public static Sb2sbGather untiled(
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
                    AllGather all = AllGather.columns(group, h, w, dtype, config.algorithm(), h);
                    Shape shape = new Shape(h, w, dtype, h, w * tpDegree);
                    return new Sb2sbGather(world, group, shape, new AllGather[] {all});
                });
    }

    /** Collective: {@link Sb2sb#allgatherSb2sbTiled} of [m, k] by {@code lnc} programs. */
    public static Sb2sbGather tiled(
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
                    AllGather[] programs = new AllGather[Sb2sbRules.programs(m, lnc)];
                    try {
                        for (int p = 0; p < programs.length; p++) {
                            programs[p] =
                                    AllGather.columns(
                                            group,
                                            m / programs.length,
                                            k,
                                            dtype,
                                            config.algorithm(),
                                            Sb2sbRules.tileRows(m));
                        }
                        Shape shape = new Shape(m, k, dtype, m, k * tpDegree);
                        return new Sb2sbGather(world, group, shape, programs);
                    } catch (RuntimeException | Error e) {
                        closeAll(programs);
                        throw e;
                    }
                });
    }

    /** Collective: {@link Sb2sb#allgatherRows}; the ranks of a group may own unlike many rows. */
    public static Sb2sbGather rows(
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
                    AllGather all = AllGather.rows(group, shards, cols, dtype, config.algorithm());
                    Shape shape = new Shape(rows, cols, dtype, shards.totalRows(), cols);
                    return new Sb2sbGather(world, group, shape, new AllGather[] {all});
                });
    }

    private static Sb2sbGather prepare(
            Fabric world,
            int replicaGroups,
            int tpDegree,
            Runnable rules,
            Function<Fabric, Sb2sbGather> preparation) {
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
        return programs.length;
    }

    /** What every call of a program does on this rank; its chunks are its tiles. */
    public RankPlan plan(int program) {
        return programs[program].plan();
    }

    /** What the latest call did on this rank; of several programs, each with tracks of its own. */
    public Timeline timeline() {
        if (programs.length == 1) {
            return programs[0].timeline();
        }
        List<Timeline.Track> tracks = new ArrayList<>();
        long startNs = Long.MAX_VALUE;
        for (AllGather program : programs) {
            startNs = Math.min(startNs, program.timeline().startNs());
        }
        long rowsOfOne = shape.rows() / programs.length;
        int chunksOfOne = programs[0].plan().chunks().count(0);
        long elapsedNs = 0;
        for (int p = 0; p < programs.length; p++) {
            Timeline own = programs[p].timeline();
            long lateNs = own.startNs() - startNs;
            elapsedNs = Math.max(elapsedNs, lateNs + own.elapsedNs());
            for (Timeline.Track track : own.tracks()) {
                tracks.add(track.asPartOf("program-" + p, lateNs, p * rowsOfOne, p * chunksOfOne));
            }
        }
        return new Timeline(programs[0].timeline().rank(), startNs, elapsedNs, tracks);
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

    private static void closeAll(AllGather[] programs) {
        Arrays.stream(programs).filter(program -> program != null).forEach(AllGather::close);
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
