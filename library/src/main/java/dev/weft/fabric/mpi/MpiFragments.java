package dev.weft.fabric.mpi;

import dev.weft.fabric.mpi.MpiMessage.Field;

/**
 * The fragments of a rectangle, each of which is sent by one call of MPI. Both ends compute them
 * from the same numbers. No fragment is larger than a given size, unless one row is, so that counts
 * stay far below 2^31 and messages never wait long behind one. A rectangle without gaps is one long
 * row that may be cut anywhere.
 *
 * @param total rows of the rectangle; bytes if it has no gaps
 * @param rows of one fragment, in the same unit; the last one may have fewer
 * @param count fragments
 */
record MpiFragments(boolean contiguous, long total, long rows, long rowBytes, int count) {

    /**
     * The default size. MPI sends this much eagerly, without a handshake, since {@code MpiLibrary}
     * has told it to. Over TCP, handshakes queued up behind the rows of the other direction, and
     * two hosts that sent to each other took turns, at half the link's rate (1112 ms instead of 570
     * for 8 MiB each way at 119 Mbit/s).
     */
    private static final long MOST_BYTES = Long.getLong("weft.mpi.message", 240L << 10);

    /** The fragments of a put's rectangle. */
    static MpiFragments of(MpiMessage put) {
        return of(
                put.get(Field.ROWS),
                put.get(Field.ROW_BYTES),
                put.get(Field.FROM_PITCH),
                put.get(Field.TO_PITCH),
                MOST_BYTES);
    }

    static MpiFragments of(long rows, long rowBytes, long fromPitch, long toPitch, long mostBytes) {
        boolean contiguous = rows == 1 || fromPitch == rowBytes && toPitch == rowBytes;
        long total = contiguous ? Math.multiplyExact(rows, rowBytes) : rows;
        long unit = contiguous ? 1 : rowBytes;
        if (unit > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "rows of " + rowBytes + " bytes with gaps: expected less than 2 GiB");
        }
        long perFragment = Math.max(1, Math.min(mostBytes, Integer.MAX_VALUE) / Math.max(1, unit));
        int count = Math.toIntExact(Math.ceilDiv(total, perFragment));
        return new MpiFragments(contiguous, total, perFragment, unit, count);
    }

    /** Rows, or bytes if there are no gaps, of one fragment. */
    int rows(int fragment) {
        return (int) Math.min(rows, total - fragment * rows);
    }

    /** The offset of a fragment from the beginning of the rectangle. */
    long at(int fragment, long pitch) {
        return fragment * rows * (contiguous ? 1 : pitch);
    }
}
