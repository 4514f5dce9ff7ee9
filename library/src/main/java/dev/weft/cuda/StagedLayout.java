package dev.weft.cuda;

import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.plan.Transfer;
import dev.weft.tensor.DType;

/**
 * Where rows lie in host memory on their way between GPUs of different hosts. Each rank's part of a
 * region, as a map of bytes:
 *
 * <pre>
 * byte 0    the words of {@link HostSteps}
 * byte 64   4 bytes       staged word: chunks of its shard that this rank has brought to host memory,
 *                         over all calls
 * byte 128  4 bytes each  flags, one for each chunk of all shards: the latest call in which it arrived
 * page      2 slots       this rank's shard
 * page      2 slots       what arrives here: all rows, laid out like gathered A
 * </pre>
 *
 * <p>Rows have the pitch that they have on the device. Calls use the two slots in turn. Pure.
 */
record StagedLayout(Chunks chunks, DType dtype) {

    static final long STAGED_AT = HostSteps.BYTES;
    static final int SLOTS = 2;

    private static final long FLAGS_AT = 128;
    private static final long PAGE_BYTES = 4096;

    long pitchBytes() {
        return DeviceMatrix.alignedPitch(dtype, chunks.cols()) * dtype.bytes();
    }

    long flagAt(int tag) {
        return FLAGS_AT + 4L * tag;
    }

    /** Where the rows begin: on a page of their own, as all that follows. */
    long rowsAt() {
        return roundUp(flagAt(chunks.total()));
    }

    long shardAt(int rank, int slot) {
        return rowsAt() + slot * slotBytes(chunks.shards().rows(rank));
    }

    long landingAt(int rank, int slot) {
        return shardAt(rank, SLOTS) + slot * slotBytes(chunks.shards().totalRows());
    }

    /** Bytes of a rank's part, whole pages. */
    long bytes(int rank) {
        return landingAt(rank, SLOTS);
    }

    private long slotBytes(long rows) {
        return roundUp(DeviceMatrix.alignedBytes(dtype, rows, chunks.cols()));
    }

    private static long roundUp(long bytes) {
        return Math.ceilDiv(bytes, PAGE_BYTES) * PAGE_BYTES;
    }

    /** Where a chunk begins within its shard. */
    long inShard(Chunk chunk) {
        return chunk.firstRow() * pitchBytes() + chunk.firstCol() * dtype.bytes();
    }

    /** Where a chunk begins within all rows, on the device as in host memory. */
    long inGathered(Chunk chunk) {
        return chunks.shards().firstRow(chunk.source()) * pitchBytes() + inShard(chunk);
    }

    /** Bytes of a chunk's rows. */
    long width(Chunk chunk) {
        return chunk.cols() * dtype.bytes();
    }

    /** What the staged word of {@code source} reaches with its chunk {@code chunk} of a call. */
    int staged(int call, int source, int chunk) {
        return (call - 1) * chunks.count(source) + chunk + 1;
    }

    /** The transfer of one chunk in the calls that use {@code slot}. */
    Move move(Region region, Transfer transfer, int slot) {
        Chunk chunk = chunks.chunk(transfer.source(), transfer.chunk());
        boolean wholeRows = chunk.cols() == chunks.cols();
        return new Move(
                region,
                transfer.from(),
                transfer.isForward()
                        ? landingAt(transfer.from(), slot) + inGathered(chunk)
                        : shardAt(transfer.from(), slot) + inShard(chunk),
                pitchBytes(),
                transfer.to(),
                landingAt(transfer.to(), slot) + inGathered(chunk),
                pitchBytes(),
                chunk.rows(),
                // With what pads them, whole rows travel in one piece.
                wholeRows ? pitchBytes() : width(chunk),
                flagAt(transfer.tag()),
                -1);
    }
}
