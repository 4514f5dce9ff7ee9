package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.Region;
import dev.weft.plan.Chunks;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;

/**
 * An operator's memory that peers can reach, besides a shared B. Each rank's part, as a map of
 * bytes:
 *
 * <pre>
 * byte 0      4 bytes       start word: the number of the latest call this rank has started
 * byte 128    4 bytes       release word: shards that this rank is done with, over all calls (only
 *                           where shards land in ping-pong buffers)
 * byte 256    4 bytes each  progress flags, one per chunk: the number of the latest call in which it
 *                           arrived; the flags of one source start on their own 128 bytes
 * 128 bytes   4 bytes each  summary counters, one per lane of every rank, 128 bytes apart (only where
 *                           they are wanted)
 * page        2 slots       this rank's shard, [rows, K]
 * page        2 slots       what lands here: gathered A, or two ping-pong buffers, or nothing
 * </pre>
 *
 * The owner writes its words and its shards; a flag and its chunk's place are written by the one
 * rank whose lane delivers that chunk.
 */
final class OperatorMemory {

    static final long START_AT = 0;
    static final long RELEASED_AT = 128;
    static final int SLOTS = 2;

    private static final long FLAGS_AT = 256;
    private static final long FLAG_ROW_BYTES = 128;
    private static final long PAGE_BYTES = 4096;

    private final Region region;
    private final Landing landing;
    private final Shards rows;
    private final long cols;
    private final long[] flagRowAt;
    private final int lanes;
    private final Matrix[][] shards;
    private final Matrix[][] landings;

    /**
     * Collective.
     *
     * @param lanes summary counters per rank, 0 for none
     */
    OperatorMemory(Fabric fabric, Chunks chunks, DType dtype, Landing landing, int lanes) {
        this.landing = landing;
        this.lanes = lanes;
        this.rows = chunks.shards();
        this.cols = chunks.cols();
        int ranks = rows.ranks();
        flagRowAt = new long[ranks + 1];
        flagRowAt[0] = FLAGS_AT;
        for (int s = 0; s < ranks; s++) {
            long bytes = (long) Integer.BYTES * chunks.count(s);
            flagRowAt[s + 1] = flagRowAt[s] + roundUp(bytes, FLAG_ROW_BYTES);
        }
        long shardsAt = roundUp(summaryAt(ranks, 0), PAGE_BYTES);
        long landingRows = landingRows();
        long landingCols = landing == Landing.COLUMNS ? Math.multiplyExact(cols, ranks) : cols;
        long landingSlot = slotBytes(dtype, landingRows, landingCols);
        long ownSlot = slotBytes(dtype, rows.rows(fabric.rank()), cols);
        region = fabric.allocate(shardsAt + SLOTS * (ownSlot + landingSlot));

        shards = new Matrix[SLOTS][ranks];
        landings = new Matrix[SLOTS][ranks];
        for (int slot = 0; slot < SLOTS; slot++) {
            for (int r = 0; r < ranks; r++) {
                long shardSlot = slotBytes(dtype, rows.rows(r), cols);
                shards[slot][r] = view(r, shardsAt + slot * shardSlot, dtype, rows.rows(r), cols);
                long at = shardsAt + SLOTS * shardSlot + slot * landingSlot;
                landings[slot][r] = view(r, at, dtype, landingRows, landingCols);
            }
        }
    }

    private long landingRows() {
        return switch (landing) {
            case NONE -> 0;
            case ROWS -> rows.totalRows();
            case COLUMNS, PING_PONG -> rows.maxRows();
        };
    }

    private Matrix view(int rank, long at, DType dtype, long rowCount, long colCount) {
        long bytes = Matrix.contiguousBytes(dtype, rowCount, colCount);
        return Matrix.of(region.part(rank).asSlice(at, bytes), dtype, rowCount, colCount);
    }

    private static long slotBytes(DType dtype, long rowCount, long colCount) {
        return roundUp(Matrix.contiguousBytes(dtype, rowCount, colCount), PAGE_BYTES);
    }

    private static long roundUp(long bytes, long unit) {
        return Math.ceilDiv(bytes, unit) * unit;
    }

    Region region() {
        return region;
    }

    /** Bytes of this rank's part: all that the operator keeps where peers can reach it. */
    long bytes(int rank) {
        return region.part(rank).byteSize();
    }

    long flagAt(int source, int chunk) {
        return flagRowAt[source] + (long) Integer.BYTES * chunk;
    }

    /** The counter of what lane {@code lane} of rank {@code initiator} has delivered here. */
    long summaryAt(int initiator, int lane) {
        long first = flagRowAt[rows.ranks()];
        return first + FLAG_ROW_BYTES * ((long) initiator * lanes + lane);
    }

    /** The slot that a call uses. */
    static int slot(int call) {
        return call & 1;
    }

    Matrix shard(int rank, int call) {
        return shards[slot(call)][rank];
    }

    /** Gathered A at {@code rank}; empty where none is kept. */
    Matrix gathered(int rank, int call) {
        return landings[slot(call)][rank];
    }

    /**
     * Where chunks land at {@code rank}.
     *
     * @param buffer the number of a ping-pong buffer; of no concern where shards have own places
     */
    Matrix landing(int rank, int buffer, int call) {
        return landing == Landing.PING_PONG ? landings[buffer][rank] : gathered(rank, call);
    }

    /** The row at which the shard of {@code source} starts where it lands. */
    long landingRow(int source) {
        return landing == Landing.ROWS ? rows.firstRow(source) : 0;
    }

    /** The column at which the shard of {@code source} starts where it lands. */
    long landingCol(int source) {
        return landing == Landing.COLUMNS ? source * cols : 0;
    }
}
