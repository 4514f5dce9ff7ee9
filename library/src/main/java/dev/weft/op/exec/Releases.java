package dev.weft.op.exec;

import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator.View;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * Releases ping-pong buffers for the lanes that fill them. A remote shard is released once its rows
 * are multiplied, with all parts of the columns, and forwarded, and every shard before it is
 * released. The release word counts released shards over all calls. Does nothing if every shard has
 * its own place.
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

    /** By source: the number of its shard in the order of releases, from 1. */
    private final int[] numbers;

    /** By number: how many pieces of row blocks and forwards the shard has. */
    private final int[] pieces;

    private final int[] forwards;
    private final AtomicIntegerArray left;
    private int call;
    private int released;

    /** For row blocks that are multiplied in {@code columnParts} pieces. */
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

    /** What the release word must have reached before a transfer with this credit may start. */
    public int needed(int ofCall, int credit) {
        return (ofCall - 1) * remoteShards + credit;
    }

    /**
     * How far the word can be past what a transfer needs: its owner may have released all shards of
     * this call, and all of the next one if nothing arrives in that.
     */
    public int mostAhead() {
        return 2 * remoteShards;
    }

    /** Called before the workers start; {@code ofView} says what will use the buffers. */
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
            // If only the product runs, nothing arrives: its blocks need not hold anything back.
            left.set(number, ofView == View.COMPUTE_ONLY ? 0 : uses);
        }
        advance();
    }

    /**
     * Notes that a piece of a block, or a forward, of the shard of {@code source} is done.
     * Thread-safe.
     */
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
