package dev.weft.compat;

import dev.weft.fabric.Fabric;
import dev.weft.tensor.Matrix;
import java.lang.foreign.Arena;

/**
 * The SBUF-to-SBUF all-gather calls, one call each: prepare, gather, free. Every rank of the world
 * calls, in the same order; the bytes at every rank of a group are the same afterwards.
 *
 * <p>A matrix that a call returns is fresh and stays valid as long as something refers to it; the
 * forms with {@code out} write into the caller's memory instead. Who gathers the same shape again
 * and again prepares a {@link Sb2sbGather} once.
 *
 * <p>Arguments that do not fit are refused with their values, and end the call on the other ranks
 * too; as after every failure, the world is of no further use then.
 */
public final class Sb2sb {

    private Sb2sb() {}

    /**
     * Gathers small tensors along the last dimension: [H, W] on each rank become [H, W x tpDegree],
     * in rank order.
     *
     * @param inp H of at most 128 rows, H x W elements of at most 24 MiB
     * @param replicaGroups groups of consecutive ranks that gather on their own
     * @param tpDegree ranks of one group
     */
    public static Matrix allgatherSb2sb(Fabric world, Matrix inp, int replicaGroups, int tpDegree) {
        try (Sb2sbGather gather = untiled(world, inp, replicaGroups, tpDegree)) {
            return fresh(gather, inp);
        }
    }

    /** As {@link #allgatherSb2sb(Fabric, Matrix, int, int)}, into {@code out}. */
    public static void allgatherSb2sb(
            Fabric world, Matrix inp, int replicaGroups, int tpDegree, Matrix out) {
        try (Sb2sbGather gather = untiled(world, inp, replicaGroups, tpDegree)) {
            gather.call(inp, out);
        }
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
        try (Sb2sbGather gather = tiled(world, inp, replicaGroups, tpDegree, lnc)) {
            return fresh(gather, inp);
        }
    }

    /** As {@link #allgatherSb2sbTiled(Fabric, Matrix, int, int, int)}, into {@code out}. */
    public static void allgatherSb2sbTiled(
            Fabric world, Matrix inp, int replicaGroups, int tpDegree, int lnc, Matrix out) {
        try (Sb2sbGather gather = tiled(world, inp, replicaGroups, tpDegree, lnc)) {
            gather.call(inp, out);
        }
    }

    /** The sibling that puts shard below shard: [rows of rank r, K] become [all rows, K]. */
    public static Matrix allgatherRows(Fabric world, Matrix inp, int replicaGroups, int tpDegree) {
        try (Sb2sbGather gather = rows(world, inp, replicaGroups, tpDegree)) {
            return fresh(gather, inp);
        }
    }

    /** As {@link #allgatherRows(Fabric, Matrix, int, int)}, into {@code out}. */
    public static void allgatherRows(
            Fabric world, Matrix inp, int replicaGroups, int tpDegree, Matrix out) {
        try (Sb2sbGather gather = rows(world, inp, replicaGroups, tpDegree)) {
            gather.call(inp, out);
        }
    }

    private static Matrix fresh(Sb2sbGather gather, Matrix inp) {
        Matrix out =
                Matrix.allocate(Arena.ofAuto(), inp.dtype(), gather.outRows(), gather.outCols());
        gather.call(inp, out);
        return out;
    }

    private static Sb2sbGather untiled(Fabric world, Matrix inp, int groups, int tpDegree) {
        return Sb2sbGather.untiled(
                world, inp.rows(), inp.cols(), inp.dtype(), groups, tpDegree, Sb2sbConfig.DEFAULT);
    }

    private static Sb2sbGather tiled(Fabric world, Matrix inp, int groups, int tpDegree, int lnc) {
        return Sb2sbGather.tiled(
                world,
                inp.rows(),
                inp.cols(),
                inp.dtype(),
                groups,
                tpDegree,
                lnc,
                Sb2sbConfig.DEFAULT);
    }

    private static Sb2sbGather rows(Fabric world, Matrix inp, int groups, int tpDegree) {
        return Sb2sbGather.rows(
                world, inp.rows(), inp.cols(), inp.dtype(), groups, tpDegree, Sb2sbConfig.DEFAULT);
    }
}
