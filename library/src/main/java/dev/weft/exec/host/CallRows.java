package dev.weft.exec.host;

import dev.weft.plan.Shards;

/**
 * The rows of the running call: the first ones of each shard. Steps keep their places in buffers,
 * with as many rows as the call has of theirs. What the caller sees has no gaps between shards.
 * Written by the caller between calls.
 */
final class CallRows {

    private final Shards most;
    private final long[] shifts;
    private Shards shards;
    private boolean whole = true;
    private int version;

    /**
     * @param most what a plan was written for
     */
    CallRows(Shards most) {
        this.most = most;
        this.shifts = new long[most.ranks()];
        this.shards = most;
    }

    /** The rows of the next calls. */
    void set(Shards next) {
        if (next == shards || next.equals(shards)) {
            return;
        }
        shards = next;
        whole = next.equals(most);
        for (int source = 0; source < shifts.length; source++) {
            shifts[source] = next.firstRow(source) - most.firstRow(source);
        }
        version++;
    }

    Shards shards() {
        return shards;
    }

    /** Whether the call has all rows that the plan was written for. */
    boolean isWhole() {
        return whole;
    }

    /** Another number for other rows. */
    int version() {
        return version;
    }

    /** How many of {@code rows} rows, from row {@code first} of a shard on, the call has. */
    long count(int source, long first, long rows) {
        return Math.clamp(shards.rows(source) - first, 0, rows);
    }

    /** Where the rows of a shard move if there are no gaps between shards. */
    long shift(int source) {
        return shifts[source];
    }

    /** The end of a shard's rows in the plan. */
    long endOf(int source) {
        return most.firstRow(source) + most.rows(source);
    }
}
