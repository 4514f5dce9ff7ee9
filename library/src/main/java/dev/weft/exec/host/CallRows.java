package dev.weft.exec.host;

import dev.weft.plan.Shards;

/**
 * The rows of the running call: the first ones of each shard. Steps keep their places in buffers,
 * with as many rows as the call has of theirs. What the caller sees has no gaps between shards.
 * Written by the caller between calls.
 */
public final class CallRows {

    private final Shards most;
    private final long[] shifts;
    private Shards shards;
    private boolean whole = true;
    private int version;

    /**
     * @param most what a plan was written for
     */
    public CallRows(Shards most) {
        this.most = most;
        this.shifts = new long[most.ranks()];
        this.shards = most;
    }

    /** The rows of the next calls; returns whether they are other rows than before. */
    public boolean set(Shards next) {
        if (next == shards || next.equals(shards)) {
            return false;
        }
        shards = next;
        whole = next.equals(most);
        for (int source = 0; source < shifts.length; source++) {
            shifts[source] = next.firstRow(source) - most.firstRow(source);
        }
        version++;
        return true;
    }

    public Shards shards() {
        return shards;
    }

    /** Whether the call has all rows that the plan was written for. */
    public boolean isWhole() {
        return whole;
    }

    /** Another number for other rows. */
    public int version() {
        return version;
    }

    /** How many of {@code rows} rows, from row {@code first} of a shard on, the call has. */
    public long count(int source, long first, long rows) {
        return Math.clamp(shards.rows(source) - first, 0, rows);
    }

    /** Where the rows of a shard move if there are no gaps between shards. */
    long shift(int source) {
        return shifts[source];
    }

    /**
     * Where a row of the plan, or the end of some, lies if there are no gaps between shards: rows
     * that the call has not are where the next one is that it has.
     */
    public long at(long row) {
        int source = shifts.length - 1;
        while (source > 0 && row < most.firstRow(source)) {
            source--;
        }
        long inShard = Math.min(row - most.firstRow(source), shards.rows(source));
        return shards.firstRow(source) + inShard;
    }

    /** Whether rows of the plan are of more than one shard. */
    public boolean isOfSeveralShards(long row, long count) {
        for (int source = 1; source < shifts.length; source++) {
            if (row < most.firstRow(source) && row + count > most.firstRow(source)) {
                return true;
            }
        }
        return false;
    }

    /** The end of a shard's rows in the plan. */
    long endOf(int source) {
        return most.firstRow(source) + most.rows(source);
    }
}
