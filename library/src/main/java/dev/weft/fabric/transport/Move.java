package dev.weft.fabric.transport;

import java.util.BitSet;

/**
 * The move of a rectangle of bytes from one rank's part of a region to another's, and the words at
 * its destination that signal its arrival. Made once and used in many calls.
 *
 * @param from the rank in whose part it is; this one or {@code to} is on this rank's host
 * @param fromAt its offset there
 * @param fromPitch bytes from row to row there
 * @param to the rank to whose part it goes
 * @param flagAt the word of {@code to}'s part that is set once it has arrived
 * @param counterAt a second such word, set after the first, or -1
 * @param wanted which rows of a call are wanted at the destination, where others may be left out;
 *     null if all are
 * @param firstRow the number of the first row in {@code wanted}
 */
public record Move(
        Region region,
        int from,
        long fromAt,
        long fromPitch,
        int to,
        long toAt,
        long toPitch,
        long rows,
        long rowBytes,
        long flagAt,
        long counterAt,
        BitSet wanted,
        int firstRow) {

    /** Of all rows. */
    public Move(
            Region region,
            int from,
            long fromAt,
            long fromPitch,
            int to,
            long toAt,
            long toPitch,
            long rows,
            long rowBytes,
            long flagAt,
            long counterAt) {
        this(
                region, from, fromAt, fromPitch, to, toAt, toPitch, rows, rowBytes, flagAt,
                counterAt, null, 0);
    }

    /** The same without what comes before the first row that is wanted, and after the last. */
    public Move trimmed() {
        if (wanted == null) {
            return this;
        }
        int end = Math.toIntExact(firstRow + rows);
        int first = wanted.nextSetBit(firstRow);
        boolean none = first < 0 || first >= end;
        int skipped = none ? 0 : first - firstRow;
        return new Move(
                region,
                from,
                fromAt + skipped * fromPitch,
                fromPitch,
                to,
                toAt + skipped * toPitch,
                toPitch,
                none ? 0 : wanted.previousSetBit(end - 1) - first + 1,
                rowBytes,
                flagAt,
                counterAt);
    }

    /** How many bytes are wanted. */
    public long bytes() {
        if (wanted == null) {
            return rows * rowBytes;
        }
        long count = 0;
        int end = Math.toIntExact(firstRow + rows);
        for (int row = wanted.nextSetBit(firstRow); row >= 0 && row < end; ) {
            count++;
            row = wanted.nextSetBit(row + 1);
        }
        return count * rowBytes;
    }

    /** Whether the rows have no gaps at either end, so that they are one block of bytes. */
    public boolean isContiguous() {
        return rows == 1 || fromPitch == rowBytes && toPitch == rowBytes;
    }
}
