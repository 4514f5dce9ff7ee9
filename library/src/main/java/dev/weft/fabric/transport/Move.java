package dev.weft.fabric.transport;

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
        long counterAt) {

    /** Whether the rows have no gaps at either end, so that they are one block of bytes. */
    public boolean isContiguous() {
        return rows == 1 || fromPitch == rowBytes && toPitch == rowBytes;
    }
}
