package dev.weft.fabric;

/**
 * A rectangle of bytes that goes from one rank's part of a region to another's, and the words at
 * its destination that tell of its arrival. Made once and moved in many calls.
 *
 * @param from the rank in whose part it lies; its host, or that of {@code to}, is this rank's
 * @param fromAt where it begins there
 * @param fromPitch bytes from row to row there
 * @param to the rank in whose part it lands
 * @param flagAt the word of {@code to}'s part that is set once it has landed
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

    /** Whether the rows lie without gaps at both ends, as if they were one. */
    public boolean isContiguous() {
        return rows == 1 || fromPitch == rowBytes && toPitch == rowBytes;
    }
}
