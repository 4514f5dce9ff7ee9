package dev.weft.cuda.exec;

import dev.weft.cuda.DeviceMatrix;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;

/**
 * Where rows lie in the two buffers of every rank. Calls use the buffers in turn, and all ranks'
 * are laid out by the same rule, so that a rank knows where a peer's rows lie. In gathered A, below
 * or beside each other, a rank's own rows have their place like all others. With ping-pong buffers
 * a buffer holds the rank's own shard and behind it room for one that arrives: there the slot of a
 * transfer says which buffer, not the call. Pure.
 *
 * @param most what there is room for
 * @param shards the rows of a call, between which there are no gaps
 */
public record DeviceLayout(Shards most, Shards shards, DType dtype, long cols, Place place) {

    /** Of calls of all rows. */
    public DeviceLayout(Shards shards, DType dtype, long cols, Place place) {
        this(shards, shards, dtype, cols, place);
    }

    /** In the same memory, of calls of other rows. */
    public DeviceLayout with(Shards rows) {
        return rows == shards ? this : new DeviceLayout(most, rows, dtype, cols, place);
    }

    /** Where a rank keeps rows that are not its own. */
    public enum Place {
        /** In gathered A, shard below shard: [M, K]. */
        ROWS,
        /** In gathered A, shards side by side: [rows, K x ranks]. All shards have the same size. */
        COLUMNS,
        /** In two buffers of one shard each, used in turn; gathered A is never stored. */
        PING_PONG
    }

    /** Bytes from one row's start to the next one's, the same everywhere. */
    public long pitchBytes() {
        return DeviceMatrix.alignedPitch(dtype, landingCols()) * dtype.bytes();
    }

    private long landingCols() {
        return place == Place.COLUMNS ? Math.multiplyExact(cols, shards.ranks()) : cols;
    }

    /** Bytes of each of a rank's buffers; at least one. */
    public long bytes(int rank) {
        long rows =
                switch (place) {
                    case COLUMNS -> most.maxRows();
                    case PING_PONG -> most.rows(rank) + most.maxRows();
                    case ROWS -> most.totalRows();
                };
        return Math.multiplyExact(Math.max(1, rows), pitchBytes());
    }

    /** Which of a rank's buffers holds the shard of {@code source} in a call of this parity. */
    public int buffer(int rank, int source, int slot, int parity) {
        return place == Place.PING_PONG && source != rank ? slot : parity;
    }

    /** Where an element of the shard of {@code source} lies in that buffer of {@code rank}. */
    public long at(int rank, int source, long row, long col) {
        long firstRow =
                switch (place) {
                    case COLUMNS -> 0;
                    case PING_PONG -> source == rank ? 0 : most.rows(rank);
                    case ROWS -> shards.firstRow(source);
                };
        long firstCol = place == Place.COLUMNS ? source * cols : 0;
        return (firstRow + row) * pitchBytes() + (firstCol + col) * dtype.bytes();
    }

    /** The shard of {@code source} in a buffer of {@code rank} that starts at {@code address}. */
    public DeviceMatrix shard(int rank, int source, long address) {
        long pitch = pitchBytes() / dtype.bytes();
        long at = address + at(rank, source, 0, 0);
        return new DeviceMatrix(at, dtype, shards.rows(source), cols, pitch);
    }

    /** How many of some rows of a shard the call has. */
    public long count(int source, long firstRow, long rows) {
        return Math.clamp(shards.rows(source) - firstRow, 0, rows);
    }

    /** All shards in a buffer that starts at {@code address}, where it holds them all. */
    public DeviceMatrix gathered(long address) {
        long rows = place == Place.COLUMNS ? shards.maxRows() : shards.totalRows();
        long pitch = pitchBytes() / dtype.bytes();
        return new DeviceMatrix(address, dtype, rows, landingCols(), pitch);
    }
}
