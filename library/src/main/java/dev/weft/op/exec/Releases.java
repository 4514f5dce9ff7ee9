package dev.weft.op.exec;

import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator.View;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * Gives ping-pong buffers back to the lanes that fill them. A remote shard is released once its
 * rows are multiplied, with all parts of the columns, and forwarded and every shard before it is
 * released. The release word counts released shards over all calls. Does nothing where every shard
 * has a place of its own.
 *
 * <p>Memory order: every use ends with a decrement, which releases what its worker has read, and
 * the last decrement acquires all others. Publishing the word, after that, pairs with the acquire
 * of the lane that then overwrites the buffer.
 */
public final class Releases {

    private final Transport fabric;
    private final OperatorMemory memory;
    private final int rank;
    private final int remoteShards;
    private final boolean active;

    /** By source: which of the shards it is that are released, from 1 on. */
    private final int[] numbers;

    /** By number: pieces of row blocks and forwards of the shard. */
    private final int[] pieces;

    private final int[] forwards;
    private final AtomicIntegerArray left;
    private int call;
    private int released;

    /** Where every row block is multiplied in {@code columnParts} pieces. */
    public Releases(RankPlan plan, Transport fabric, OperatorMemory memory, int columnParts) {
        this.fabric = fabric;
        this.memory = memory;
        this.rank = plan.rank();
        this.remoteShards = plan.ranks() - 1;
        this.active = plan.storage() == RankPlan.Storage.PING_PONG;
        this.numbers = plan.releaseNumbers();
        this.pieces = new int[plan.ranks()];
        this.forwards = new int[plan.ranks()];
        this.left = new AtomicIntegerArray(plan.ranks());
        for (RowBlock block : plan.consumption()) {
            pieces[numbers[block.source()]] += columnParts;
        }
        for (Lane lane : plan.lanes()) {
            for (Transfer transfer : lane.transfers()) {
                forwards[numbers[transfer.source()]]++;
            }
        }
    }

    /** What the release word must have reached before a transfer with this credit may land. */
    public int needed(int ofCall, int credit) {
        return (ofCall - 1) * remoteShards + credit;
    }

    /**
     * How far past what a transfer needs the word can be: its owner may have released all shards of
     * this call, and all of the next one if nothing lands in that.
     */
    public int mostAhead() {
        return 2 * remoteShards;
    }

    /** Called before the workers start; {@code ofView} says which uses there will be. */
    public synchronized void begin(int ofCall, View ofView) {
        if (!active) {
            return;
        }
        call = ofCall;
        released = 0;
        for (int number = 1; number <= remoteShards; number++) {
            int uses =
                    (ofView == View.COMM_ONLY ? 0 : pieces[number])
                            + (ofView == View.COMPUTE_ONLY ? 0 : forwards[number]);
            // Nothing lands when only the product runs: its blocks need not hold anything back.
            left.set(number, ofView == View.COMPUTE_ONLY ? 0 : uses);
        }
        advance();
    }

    /** A piece of a block or a forward of the shard of {@code source} is done. Any worker calls. */
    public void used(int source) {
        if (active && source != rank && left.decrementAndGet(numbers[source]) == 0) {
            advance();
        }
    }

    private synchronized void advance() {
        while (released < remoteShards && left.get(released + 1) <= 0) {
            released++;
        }
        fabric.publish(memory.region(), OperatorMemory.RELEASED_AT, needed(call, released));
    }
}
