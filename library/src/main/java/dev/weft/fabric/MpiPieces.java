package dev.weft.fabric;

/**
 * How a rectangle is cut into messages: both ends cut alike, since they know the same numbers. No
 * message is larger than {@link #mostBytes}, unless one row is, so that counts stay far below 2^31
 * and other letters never wait long behind one. A rectangle without gaps is one long row that may
 * be cut anywhere.
 *
 * @param rows of one message; the last one may have fewer
 * @param count messages
 */
record MpiPieces(boolean contiguous, long total, long rows, long rowBytes, int count) {

    /**
     * What the other end's mail thread need not agree to before it is sent, where MPI was told so
     * ({@code MpiLibrary}): over TCP such agreements queued up behind the rows of the other
     * direction, and two hosts that sent to each other took turns, at half the link's rate (1112 ms
     * instead of 570 for 8 MiB each way at 119 Mbit/s).
     */
    static final long MOST_BYTES = Long.getLong("weft.mpi.message", 240L << 10);

    static MpiPieces of(long rows, long rowBytes, long fromPitch, long toPitch, long mostBytes) {
        boolean contiguous = rows == 1 || fromPitch == rowBytes && toPitch == rowBytes;
        long total = contiguous ? Math.multiplyExact(rows, rowBytes) : rows;
        long unit = contiguous ? 1 : rowBytes;
        if (unit > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "rows of " + rowBytes + " bytes with gaps: expected less than 2 GiB");
        }
        long perMessage = Math.max(1, Math.min(mostBytes, Integer.MAX_VALUE) / Math.max(1, unit));
        int count = Math.toIntExact(Math.ceilDiv(total, perMessage));
        return new MpiPieces(contiguous, total, perMessage, unit, count);
    }

    /** Rows (bytes where there are no gaps) of one message. */
    int rows(int piece) {
        return (int) Math.min(rows, total - piece * rows);
    }

    /** Where a message's bytes begin, from the rectangle's beginning on. */
    long at(int piece, long pitch) {
        return piece * rows * (contiguous ? 1 : pitch);
    }
}
