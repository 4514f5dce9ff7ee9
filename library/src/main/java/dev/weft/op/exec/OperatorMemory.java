package dev.weft.op.exec;

import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;

/**
 * An operator's memory that peers can reach, except for a shared B. The layout of each rank's part,
 * with the byte or the alignment at which each item starts:
 *
 * <pre>
 * byte 0      4 bytes       start word: the number of the latest call this rank has started
 * byte 64     4 bytes       staged word: chunks of its shard that this rank has put into its halves,
 *                           over all calls (only if they come one by one, from a GPU)
 * byte 128    4 bytes       release word: shards that this rank has released, over all calls (only
 *                           with ping-pong buffers)
 * byte 192    4 bytes       end word: the number of the latest call that this rank has awaited (only
 *                           if peers may read its results)
 * byte 256    4 bytes each  progress flags, one per chunk: the number of the latest call in which
 *                           it arrived; each source's flags are aligned to 128 bytes
 * 128 bytes   4 bytes each  summary counters, one per lane of every rank, 128 bytes apart (only
 *                           if they are wanted)
 * page        2 halves      this rank's shard, [rows, K], unless it is part of gathered A
 * page        2 halves      what arrives here: gathered A, or two ping-pong buffers, or nothing
 * </pre>
 *
 * Bytes 32 and 48 hold words of operators on GPUs. The owner writes its own words and its shards; a
 * flag and its chunk's place are written by the one rank whose lane delivers that chunk.
 */
public final class OperatorMemory {

    public static final long START_AT = 0;
    public static final long STAGED_AT = 64;
    public static final long RELEASED_AT = 128;
    public static final long ENDED_AT = 192;
    public static final int HALVES = 2;

    private static final long FLAGS_AT = 256;
    private static final long FLAG_ROW_BYTES = 128;
    private static final long PAGE_BYTES = 4096;

    private final Region region;
    private final ArrivalPlace landing;
    private final boolean staged;
    private final boolean shardsLand;
    private final Chunks chunks;
    private final Shards rows;
    private final long cols;
    private final DType dtype;
    private final long[] flagRowAt;
    private final int lanes;
    private final long shardsAt;
    private final long landingCols;
    private final long pitchBytes;
    private final long shardPitchBytes;
    private final long landingPitchBytes;
    private final long landingHalfBytes;

    /** By half and rank; null if the rank is on another host. */
    private final Matrix[][] shards;

    private final Matrix[][] landings;

    /**
     * Memory with rows without gaps, and {@code lanes} summary counters per rank. Collective.
     *
     * @param shardsLand whether each rank's shard is in its place in its own gathered A, so that it
     *     need not be copied there
     */
    public OperatorMemory(
            Transport fabric,
            Chunks chunks,
            DType dtype,
            ArrivalPlace landing,
            boolean shardsLand,
            int lanes) {
        this(
                fabric,
                chunks,
                dtype,
                landing,
                shardsLand,
                lanes,
                chunks.cols() * dtype.bytes(),
                false);
    }

    /**
     * Host memory for ranks on GPUs: rows are {@code pitchBytes} apart, as on the device, and the
     * chunks of a shard arrive one by one. Collective.
     */
    public static OperatorMemory staged(
            Transport fabric, Chunks chunks, DType dtype, long pitchBytes) {
        return new OperatorMemory(
                fabric, chunks, dtype, ArrivalPlace.ROWS, false, 0, pitchBytes, true);
    }

    private OperatorMemory(
            Transport fabric,
            Chunks chunks,
            DType dtype,
            ArrivalPlace landing,
            boolean shardsLand,
            int lanes,
            long pitchBytes,
            boolean staged) {
        this.landing = landing;
        this.shardsLand = shardsLand;
        this.staged = staged;
        this.dtype = dtype;
        this.lanes = lanes;
        this.chunks = chunks;
        this.rows = chunks.shards();
        this.cols = chunks.cols();
        this.pitchBytes = pitchBytes;
        int ranks = rows.ranks();
        flagRowAt = new long[ranks + 1];
        flagRowAt[0] = FLAGS_AT;
        for (int s = 0; s < ranks; s++) {
            long bytes = (long) Integer.BYTES * chunks.count(s);
            flagRowAt[s + 1] = flagRowAt[s] + roundUp(bytes, FLAG_ROW_BYTES);
        }
        shardsAt = roundUp(summaryAt(ranks, 0), PAGE_BYTES);
        long landingRows = landingRows();
        boolean beside = landing == ArrivalPlace.COLUMNS;
        landingCols = beside ? Math.multiplyExact(cols, ranks) : cols;
        landingPitchBytes = beside ? landingCols * dtype.bytes() : pitchBytes;
        shardPitchBytes = shardsLand ? landingPitchBytes : pitchBytes;
        landingHalfBytes = halfBytes(landingRows, landingPitchBytes);
        region = fabric.allocate(landingAt(fabric.rank(), HALVES));

        shards = new Matrix[HALVES][ranks];
        landings = new Matrix[HALVES][ranks];
        Hosts hosts = fabric.hosts();
        for (int half = 0; half < HALVES; half++) {
            for (int r = 0; r < ranks; r++) {
                if (hosts.shareMemory(r, fabric.rank())) {
                    long at = landingAt(r, half);
                    Matrix landed = view(r, at, landingRows, landingCols, landingPitchBytes);
                    landings[half][r] = landed;
                    shards[half][r] =
                            shardsLand
                                    ? landed.block(landingRow(r), rows.rows(r), landingCol(r), cols)
                                    : view(r, shardAt(r, half), rows.rows(r), cols, pitchBytes);
                }
            }
        }
    }

    /** The offset of a half of {@code rank}'s shard in its part. */
    public long shardAt(int rank, int half) {
        return shardsLand
                ? landingAt(rank, half) + landedAt(rank)
                : shardsAt + half * halfBytes(rows.rows(rank), pitchBytes);
    }

    /** The offset of the shard of {@code source} in the memory for arrivals. */
    private long landedAt(int source) {
        return landingRow(source) * landingPitchBytes + landingCol(source) * dtype.bytes();
    }

    /** The offset of a half of the memory for arrivals in {@code rank}'s part. */
    public long landingAt(int rank, int half) {
        long ownHalves = shardsLand ? 0 : HALVES * halfBytes(rows.rows(rank), pitchBytes);
        return shardsAt + ownHalves + half * landingHalfBytes;
    }

    private long landingRows() {
        return switch (landing) {
            case NONE -> 0;
            case ROWS -> rows.totalRows();
            case COLUMNS, PING_PONG -> rows.maxRows();
        };
    }

    private Matrix view(int rank, long at, long rowCount, long colCount, long pitch) {
        MemorySegment part = region.part(rank).asSlice(at, rowCount * pitch);
        return new Matrix(part, dtype, rowCount, colCount, pitch / dtype.bytes());
    }

    /** Never zero: host memory of a GPU is pinned, which needs some memory. */
    private long halfBytes(long rowCount, long pitch) {
        long counted = staged ? Math.max(1, rowCount) : rowCount;
        return roundUp(Math.multiplyExact(counted, pitch), PAGE_BYTES);
    }

    private static long roundUp(long bytes, long unit) {
        return Math.ceilDiv(bytes, unit) * unit;
    }

    public Region region() {
        return region;
    }

    /** Bytes of this rank's part: everything that the operator keeps where peers can reach it. */
    public long bytes(int rank) {
        return region.part(rank).byteSize();
    }

    public long flagAt(int source, int chunk) {
        return flagRowAt[source] + (long) Integer.BYTES * chunk;
    }

    /** The counter of what lane {@code lane} of rank {@code initiator} has delivered here. */
    public long summaryAt(int initiator, int lane) {
        long first = flagRowAt[rows.ranks()];
        return first + FLAG_ROW_BYTES * ((long) initiator * lanes + lane);
    }

    /** The half that a call uses. */
    public static int half(int call) {
        return call & 1;
    }

    public Matrix shard(int rank, int call) {
        return shards[half(call)][rank];
    }

    /** Gathered A of {@code rank}; empty if it is not kept. */
    public Matrix gathered(int rank, int call) {
        return landings[half(call)][rank];
    }

    /** Where chunks arrive at {@code rank}; for ping-pong, the given buffer. */
    public Matrix landing(int rank, int buffer, int call) {
        return landing == ArrivalPlace.PING_PONG ? landings[buffer][rank] : gathered(rank, call);
    }

    /**
     * The transfer of one chunk in the calls that use {@code half}.
     *
     * @param fromBuffer the ping-pong buffer that a forward reads
     * @param counterAt the word in which the lane counts what it has brought there, or -1
     */
    public Move move(Transfer transfer, Chunk chunk, int fromBuffer, int half, long counterAt) {
        boolean forward = transfer.isForward();
        boolean pingPong = landing == ArrivalPlace.PING_PONG;
        long inLanding = inLanding(chunk);
        return new Move(
                region,
                transfer.from(),
                forward
                        ? landingAt(transfer.from(), pingPong ? fromBuffer : half) + inLanding
                        : shardAt(transfer.from(), half) + inShard(chunk),
                forward ? landingPitchBytes : shardPitchBytes,
                transfer.to(),
                landingAt(transfer.to(), pingPong ? transfer.slot() : half) + inLanding,
                landingPitchBytes,
                chunk.rows(),
                // Whole rows travel in one piece, including their padding.
                chunk.cols() == cols ? pitchBytes : chunk.cols() * dtype.bytes(),
                flagAt(transfer.source(), transfer.chunk()),
                counterAt);
    }

    /** The offset of a chunk in its shard. */
    public long inShard(Chunk chunk) {
        return chunk.firstRow() * shardPitchBytes + chunk.firstCol() * dtype.bytes();
    }

    /** The offset of a chunk in the memory for arrivals. */
    public long inLanding(Chunk chunk) {
        return landedAt(chunk.source())
                + chunk.firstRow() * landingPitchBytes
                + chunk.firstCol() * dtype.bytes();
    }

    /** Whether a rank's shard is a part of its own gathered A. */
    public boolean shardsLand() {
        return shardsLand;
    }

    /** Whether the chunks of a shard come one by one, after the call has started. */
    public boolean isStaged() {
        return staged;
    }

    /** The word of a rank that says when its own rows may be read. */
    public long readyAt() {
        return staged ? STAGED_AT : START_AT;
    }

    /** The value of that word of {@code source} once chunk {@code chunk} of a call may be read. */
    public int ready(int call, int source, int chunk) {
        return staged ? (call - 1) * chunks.count(source) + chunk + 1 : call;
    }

    /** Lets the fabric gather all shards of a call. Collective. */
    public void gatherBy(RowGather gather, int rank, int call) {
        long[] counts = new long[rows.ranks()];
        for (int r = 0; r < counts.length; r++) {
            counts[r] = rows.rows(r);
        }
        int half = half(call);
        gather.gather(region, shardAt(rank, half), landingAt(rank, half), pitchBytes, counts);
    }

    /** The row at which the shard of {@code source} starts where it arrives. */
    public long landingRow(int source) {
        return landing == ArrivalPlace.ROWS ? rows.firstRow(source) : 0;
    }

    /** The column at which the shard of {@code source} starts where it arrives. */
    public long landingCol(int source) {
        return landing == ArrivalPlace.COLUMNS ? source * cols : 0;
    }
}
