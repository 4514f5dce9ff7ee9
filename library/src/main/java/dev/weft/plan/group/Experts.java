package dev.weft.plan.group;

import dev.weft.plan.Shards;
import java.util.Objects;

/**
 * The experts of a layer, of which each row of A is multiplied by a few: how they are spread over
 * the ranks, in order, and how many rows a rank can take. Immutable.
 *
 * @param ofRanks how many experts each rank has; a rank may have none
 * @param perRow how many experts a row is multiplied by, at most
 * @param mostRows for how many rows of its experts, all together, a rank has memory; 0 for as many
 *     as can come to it. A row counts for each of its experts
 * @param mostOfEach how many rows an expert takes; 0 if that is not limited
 * @param overflow what is done with rows beyond {@code mostOfEach}
 */
public record Experts(
        Shards ofRanks, int perRow, long mostRows, long mostOfEach, Overflow overflow) {

    /** What is done with rows that an expert does not take. */
    public enum Overflow {
        /** The call is refused, on all ranks. */
        REFUSE,
        /** The expert leaves out the last ones. */
        DROP_LAST,
        /** The expert leaves out those of the least weight; of equal ones, the last. */
        DROP_LIGHTEST
    }

    public Experts {
        Objects.requireNonNull(overflow, "overflow");
        if (perRow < 1 || perRow > ofRanks.totalRows()) {
            throw new IllegalArgumentException(
                    "%d of %d experts for a row: expected 1 to all of them"
                            .formatted(perRow, ofRanks.totalRows()));
        }
        if (mostRows < 0 || mostOfEach < 0) {
            throw new IllegalArgumentException(
                    "experts with at most %d rows of a rank and %d of each: expected 1 or more, or 0 for no limit"
                            .formatted(mostRows, mostOfEach));
        }
    }

    /** Experts that take whatever comes. */
    public static Experts of(Shards ofRanks, int perRow) {
        return new Experts(ofRanks, perRow, 0, 0, Overflow.REFUSE);
    }

    /** With memory for so many rows on each rank; a call that brings more is refused. */
    public Experts withMostRows(long rows) {
        return new Experts(ofRanks, perRow, rows, mostOfEach, overflow);
    }

    /** With at most so many rows for each expert. */
    public Experts withMostOfEach(long rows, Overflow then) {
        return new Experts(ofRanks, perRow, mostRows, rows, then);
    }

    /** How many experts there are. */
    public int count() {
        return Math.toIntExact(ofRanks.totalRows());
    }

    /** The experts of a rank. */
    public int count(int rank) {
        return Math.toIntExact(ofRanks.rows(rank));
    }

    /** The first expert of a rank. */
    public int first(int rank) {
        return Math.toIntExact(ofRanks.firstRow(rank));
    }

    /**
     * The most rows that a rank's experts can take, all together, if A of all ranks has {@code
     * rows} rows.
     */
    public int capacity(int rank, long rows) {
        long all = Math.multiplyExact(rows, Math.min(perRow, count(rank)));
        long ofEach = mostOfEach == 0 ? rows : Math.min(rows, mostOfEach);
        long taken = Math.min(all, Math.multiplyExact(ofEach, count(rank)));
        return Math.toIntExact(mostRows == 0 ? taken : Math.min(taken, mostRows));
    }
}
