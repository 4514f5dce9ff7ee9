package dev.weft.exec.host;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Shards;

/**
 * The word by which ranks tell each other that they have started a call, and of which rows. An
 * operator has one, whichever of its plans a call uses.
 *
 * <p>Memory order: a rank publishes its rows before the word (release); who has seen the word
 * (acquire) may read them. Calls use two places for them in turn: a rank starts a call once all
 * peers have started the one before, so it overwrites nothing that a peer has yet to compare.
 */
public final class StartWord {

    /** Rows of all shards, and 32 bits that tell one list of shards from another. */
    private static final long ROWS_AT = 128;

    /** Odd, with its bits well spread: 2^64 divided by the golden ratio. */
    private static final long MULTIPLIER = 0x9E3779B97F4A7C15L;

    private final Transport fabric;
    private final Region region;
    private final Awaited[] starts;
    private final long[] published = new long[StepMemory.COPIES];

    /**
     * @param ahead calls that a peer can have started and this rank has not
     */
    public StartWord(Transport fabric, Region region, int ahead) {
        this.fabric = fabric;
        this.region = region;
        this.starts = new Awaited[fabric.size()];
        for (int r = 0; r < starts.length; r++) {
            starts[r] = Awaited.of(Awaited.START, r).within(ahead);
        }
    }

    Region region() {
        return region;
    }

    public boolean isStarted(int rank, int call) {
        return fabric.reached(region, rank, StepMemory.START_AT, call);
    }

    boolean isStartedByAll(int call) {
        for (int r = 0; r < starts.length; r++) {
            if (!isStarted(r, call)) {
                return false;
            }
        }
        return true;
    }

    /** Waits until all ranks have started a call. */
    public void await(int call) {
        for (int r = 0; r < starts.length; r++) {
            fabric.await(region, r, StepMemory.START_AT, call, starts[r]);
        }
    }

    /** Tells the peers that a call has started. */
    public void publish(int call, Shards shards) {
        long rows = rows(shards);
        int copy = StepMemory.copy(call);
        if (published[copy] != rows) {
            published[copy] = rows;
            fabric.publishValue(region, at(call), rows);
        }
        // Release: pairs with the acquire of peers that read this A, that write to buffers of
        // which there is one copy, that are about to reuse the other copy, or that compare rows.
        fabric.publish(region, StepMemory.START_AT, call);
    }

    /** Refuses a call that a peer which has started it has started with other rows. */
    public void check(int call, Shards shards) {
        long own = rows(shards);
        for (int r = 0; r < starts.length; r++) {
            if (isStarted(r, call)) {
                long other = fabric.value(region, r, at(call));
                if (other != own) {
                    throw unlike(r, other, shards);
                }
            }
        }
    }

    private IllegalArgumentException unlike(int rank, long other, Shards shards) {
        long rows = other >>> Integer.SIZE;
        return new IllegalArgumentException(
                "rank %d calls with %d rows%s, rank %d with %d rows (%s): expected the same shards on all ranks"
                        .formatted(
                                fabric.worldRank(rank),
                                rows,
                                rows == shards.totalRows() ? " in other shards" : "",
                                fabric.worldRank(fabric.rank()),
                                shards.totalRows(),
                                shards));
    }

    private static long at(int call) {
        return ROWS_AT + (long) Long.BYTES * StepMemory.copy(call);
    }

    /** Every step is a bijection of the mix so far, which spreads small differences of rows. */
    static long rows(Shards shards) {
        long mix = shards.ranks();
        for (int r = 0; r < shards.ranks(); r++) {
            mix = (mix ^ shards.rows(r)) * MULTIPLIER;
            mix ^= mix >>> Integer.SIZE;
        }
        return shards.totalRows() << Integer.SIZE | mix & 0xFFFFFFFFL;
    }
}
