package dev.weft.compat;

import static dev.weft.compat.Sb2sbLayout.ROWS;
import static dev.weft.compat.Sb2sbLayout.TILED;
import static dev.weft.compat.Sb2sbLayout.UNTILED;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.op.AllGather;
import dev.weft.op.OperatorBuilder;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Plan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;

/**
 * The SBUF-to-SBUF all-gathers: in one call each, or {@linkplain #prepare prepared} once and called
 * many times. Every rank of the world prepares, calls and closes, in the same order, with one
 * thread at a time. Afterwards, every rank of a group has the same bytes. A rank that is in none of
 * the replica groups makes these calls too, and gathers alone: it gets back what it gave.
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

    private final Fabric world;
    private final Fabric group;
    private final Place<M> place;
    private final Shape shape;
    private final AllGather<M> gather;

    /** What each rank gives and gets, and which programs share the tiles. */
    private record Shape(
            long rows, long cols, DType dtype, long outRows, long outCols, int programs) {}

    private Sb2sb(Fabric world, Fabric group, Place<M> place, Shape shape, AllGather<M> gather) {
        this.world = world;
        this.group = group;
        this.place = place;
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
        return gather(Place.HOST, UNTILED, world, inp, replicaGroups, tpDegree, 1);
    }

    /** Like {@link #allgatherSb2sb(Fabric, Matrix, ReplicaGroups, int)}, into {@code out}. */
    public static void allgatherSb2sb(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree, Matrix out) {
        into(out, UNTILED, world, inp, replicaGroups, tpDegree, 1);
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
        return gather(Place.HOST, TILED, world, inp, replicaGroups, tpDegree, lnc);
    }

    /** {@link #allgatherSb2sbTiled(Fabric, Matrix, ReplicaGroups, int, int)} by one program. */
    public static Sb2sb<Matrix> allgatherSb2sbTiled(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree) {
        return allgatherSb2sbTiled(world, inp, replicaGroups, tpDegree, 1);
    }

    /** Like the other {@code allgatherSb2sbTiled}, into {@code out}. */
    public static void allgatherSb2sbTiled(
            Fabric world, Matrix inp, ReplicaGroups groups, int tpDegree, int lnc, Matrix out) {
        into(out, TILED, world, inp, groups, tpDegree, lnc);
    }

    /** The variant that puts shard below shard: [rows of rank r, K] become [all rows, K]. */
    public static Sb2sb<Matrix> allgatherRows(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree) {
        return gather(Place.HOST, ROWS, world, inp, replicaGroups, tpDegree, 1);
    }

    /** Like {@link #allgatherRows(Fabric, Matrix, ReplicaGroups, int)}, into {@code out}. */
    public static void allgatherRows(
            Fabric world, Matrix inp, ReplicaGroups replicaGroups, int tpDegree, Matrix out) {
        into(out, ROWS, world, inp, replicaGroups, tpDegree, 1);
    }

    /**
     * Any of the single calls, in host memory or on a GPU, where programs are streams.
     *
     * @param lnc programs of each rank, for the tiled gather; otherwise 1
     */
    public static <M> Sb2sb<M> gather(
            Place<M> place,
            Sb2sbLayout layout,
            Fabric world,
            M inp,
            ReplicaGroups groups,
            int tpDegree,
            int lnc) {
        Sb2sb<M> gather = preparedFor(place, layout, world, inp, groups, tpDegree, lnc);
        try {
            gather.call(inp);
            return gather;
        } catch (RuntimeException | Error e) {
            gather.close();
            throw e;
        }
    }

    private static void into(
            Matrix out,
            Sb2sbLayout layout,
            Fabric world,
            Matrix inp,
            ReplicaGroups groups,
            int tpDegree,
            int lnc) {
        try (Sb2sb<Matrix> gather =
                preparedFor(Place.HOST, layout, world, inp, groups, tpDegree, lnc)) {
            gather.checkOrFail("out", out, gather.outRows(), gather.outCols());
            out.copyFrom(gather.call(inp));
        }
    }

    private static <M> Sb2sb<M> preparedFor(
            Place<M> place,
            Sb2sbLayout layout,
            Fabric world,
            M inp,
            ReplicaGroups groups,
            int tpDegree,
            int lnc) {
        Place.Size size = place.size(inp);
        return prepare(
                place,
                layout,
                world,
                size.rows(),
                size.cols(),
                size.dtype(),
                groups,
                tpDegree,
                lnc,
                Sb2sbConfig.DEFAULT);
    }

    /**
     * Prepares a gather of [rows, cols], in host memory or on a GPU, where programs are streams.
     * Collective. Of {@link Sb2sbLayout#ROWS}, ranks of a group may own different numbers of rows.
     *
     * @param lnc programs of each rank, for the tiled gather; otherwise 1
     */
    public static <M> Sb2sb<M> prepare(
            Place<M> place,
            Sb2sbLayout layout,
            Fabric world,
            long rows,
            long cols,
            DType dtype,
            ReplicaGroups groups,
            int tpDegree,
            int lnc,
            Sb2sbConfig config) {
        if (world == null) {
            throw new IllegalArgumentException("no world: expected the fabric of all ranks");
        }
        Fabric group = world;
        try {
            checkGroups(world, groups, tpDegree);
            layout.check(rows, cols, dtype, lnc, config.onChipBytes());
            group = groups.isAll(world.size()) ? world : world.split(groups);
            OperatorBuilder<M, ?> operator = place.operator(group).sharedResults();
            int programs = layout.programs(rows, lnc);
            AllGather<M> gather;
            Shape shape;
            if (layout == ROWS) {
                Shards shards = Shards.of(group.exchange(rows));
                gather = AllGather.rows(operator, shards, cols, dtype, config.algorithm());
                shape = new Shape(rows, cols, dtype, shards.totalRows(), cols, programs);
            } else {
                boolean inPlace = place == Place.HOST && group.sharesMemory();
                GatherWriter algorithm = config.byPrograms(programs, inPlace);
                long tile = layout.tileRows(rows);
                gather = AllGather.columns(operator, rows, cols, dtype, algorithm, tile);
                shape = new Shape(rows, cols, dtype, rows, cols * group.size(), programs);
            }
            return new Sb2sb<>(world, group, place, shape, gather);
        } catch (RuntimeException | Error e) {
            // Peers with valid arguments must not wait for this rank.
            world.fail(e);
            if (group != world) {
                group.close();
            }
            throw e;
        }
    }

    /** A rank in no group gathers alone, whatever its tp degree. */
    private static void checkGroups(Fabric world, ReplicaGroups groups, int tpDegree) {
        int own = groups.in(world.size()).groupOf(world.rank());
        int ranks = own < 0 ? tpDegree : groups.groups().get(own).size();
        if (tpDegree != ranks) {
            throw new IllegalArgumentException(
                    "tp_degree is %s, rank %s is in a replica group of %s ranks (%s): expected the ranks of its group"
                            .formatted(tpDegree, world.rank(), ranks, groups));
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

    /** This rank in its group. */
    public int rank() {
        return gather.rank();
    }

    /** What every call does on this rank; its chunks are the tiles. */
    public Plan plan() {
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
        checkOrFail("inp", inp, shape.rows(), shape.cols());
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
    private void checkOrFail(String name, M matrix, long rows, long cols) {
        Place.Size size = place.size(matrix);
        if (!size.is(rows, cols, shape.dtype())) {
            IllegalArgumentException e =
                    new IllegalArgumentException(
                            "%s is %s: expected [%s, %s] %s"
                                    .formatted(
                                            name, size.text(), rows, cols, shape.dtype().label()));
            group.fail(e);
            throw e;
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
