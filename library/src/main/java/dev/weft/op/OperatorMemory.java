package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.Region;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * An operator's memory that peers can reach. Each rank's part, as a map of bytes:
 *
 * <pre>
 * byte 0      4 bytes       start word: the number of the latest call this rank has started
 * byte 128    4 bytes each  progress flags, one per chunk: the number of the latest call in which it
 *                           arrived; the flags of one source start on their own 128 bytes
 * page        2 slots       this rank's shard, [rows, K]
 * page        2 slots       gathered A, [M, K], where the plan or the caller wants one
 * </pre>
 *
 * The owner writes the start word and its shards; a flag and its chunk's place in gathered A are
 * written by the one rank whose lane delivers that chunk.
 */
final class OperatorMemory implements AutoCloseable {

    static final long START_AT = 0;
    static final int SLOTS = 2;

    private static final long FLAGS_AT = 128;
    private static final long FLAG_ROW_BYTES = 128;
    private static final long PAGE_BYTES = 4096;

    private final Region region;
    private final long[] flagRowAt;
    private final Matrix[][] shards;
    private final Matrix[][] gathered;

    /** Collective. */
    OperatorMemory(Fabric fabric, Chunks chunks, DType dtype, boolean withGathered) {
        int ranks = chunks.shards().ranks();
        flagRowAt = new long[ranks + 1];
        flagRowAt[0] = FLAGS_AT;
        for (int s = 0; s < ranks; s++) {
            long bytes = (long) Integer.BYTES * chunks.count(s);
            flagRowAt[s + 1] = flagRowAt[s] + roundUp(bytes, FLAG_ROW_BYTES);
        }
        long shardsAt = roundUp(flagRowAt[ranks], PAGE_BYTES);
        Shards rows = chunks.shards();
        long cols = chunks.cols();
        long gatheredSlot =
                withGathered
                        ? roundUp(Matrix.contiguousBytes(dtype, rows.totalRows(), cols), PAGE_BYTES)
                        : 0;
        long ownSlot = shardSlotBytes(rows, fabric.rank(), cols, dtype);
        region = fabric.allocate(shardsAt + SLOTS * (ownSlot + gatheredSlot));

        shards = new Matrix[SLOTS][ranks];
        gathered = new Matrix[SLOTS][ranks];
        for (int slot = 0; slot < SLOTS; slot++) {
            for (int r = 0; r < ranks; r++) {
                long shardSlot = shardSlotBytes(rows, r, cols, dtype);
                long at = shardsAt + slot * shardSlot;
                shards[slot][r] = view(r, at, dtype, rows.rows(r), cols);
                if (withGathered) {
                    long gatheredAt = shardsAt + SLOTS * shardSlot + slot * gatheredSlot;
                    gathered[slot][r] = view(r, gatheredAt, dtype, rows.totalRows(), cols);
                }
            }
        }
    }

    private Matrix view(int rank, long at, DType dtype, long rows, long cols) {
        long bytes = Matrix.contiguousBytes(dtype, rows, cols);
        return Matrix.of(region.part(rank).asSlice(at, bytes), dtype, rows, cols);
    }

    private static long shardSlotBytes(Shards rows, int rank, long cols, DType dtype) {
        return roundUp(Matrix.contiguousBytes(dtype, rows.rows(rank), cols), PAGE_BYTES);
    }

    private static long roundUp(long bytes, long unit) {
        return Math.ceilDiv(bytes, unit) * unit;
    }

    Region region() {
        return region;
    }

    long flagAt(int source, int chunk) {
        return flagRowAt[source] + (long) Integer.BYTES * chunk;
    }

    /** The slot that a call uses. */
    static int slot(int call) {
        return call & 1;
    }

    Matrix shard(int rank, int call) {
        return shards[slot(call)][rank];
    }

    /** Gathered A at {@code rank}, or null where nobody asked for one. */
    Matrix gathered(int rank, int call) {
        return gathered[slot(call)][rank];
    }

    @Override
    public void close() {
        region.close();
    }
}
