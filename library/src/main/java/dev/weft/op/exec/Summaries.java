package dev.weft.op.exec;

import dev.weft.fabric.transport.Awaited;
import dev.weft.plan.Lane;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RowBlock;
import dev.weft.plan.Transfer;

/**
 * Counters of what each lane has delivered, as an alternative to several flags per row block. A
 * counter at a destination belongs to one lane of one rank, its only writer. After chunk i of the n
 * that the lane brings there in a call, it holds (call - 1) n + i. This value follows from the
 * call's number, so calls that move nothing leave no gap. A whole block comes by one lane, so one
 * counter covers it.
 */
public final class Summaries {

    private final boolean active;
    private final int rank;

    /**
     * By source and chunk, at this rank: which counter tells of it, and what place it has there.
     */
    private final int[][] initiators;

    private final int[][] lanes;
    private final int[][] places;
    private final int[][] counts;
    private final Awaited[][] awaited;

    public Summaries(RankPlan plan, boolean active) {
        this.active = active;
        this.rank = plan.rank();
        int ranks = active ? plan.ranks() : 0;
        initiators = new int[ranks][];
        lanes = new int[ranks][];
        places = new int[ranks][];
        counts = new int[ranks][];
        awaited = new Awaited[ranks][];
        for (int s = 0; s < ranks; s++) {
            int chunks = plan.chunks().count(s);
            initiators[s] = new int[chunks];
            lanes[s] = new int[chunks];
            places[s] = new int[chunks];
            counts[s] = new int[chunks];
            awaited[s] = new Awaited[chunks];
        }
        if (active) {
            plan.arrivals().forEach(this::index);
        }
    }

    private void index(Lane lane) {
        int place = 0;
        for (Transfer transfer : lane.transfers()) {
            int source = transfer.source();
            boolean put = transfer.initiator() == Transfer.Initiator.SENDER;
            int initiator = put ? transfer.from() : rank;
            int count = lane.transfers().size();
            initiators[source][transfer.chunk()] = initiator;
            // The lane may have brought all of the next call as well.
            awaited[source][transfer.chunk()] =
                    Awaited.chunk(initiator, source, transfer.chunk()).within(2 * count);
            lanes[source][transfer.chunk()] = lane.index();
            places[source][transfer.chunk()] = ++place;
            counts[source][transfer.chunk()] = count;
        }
    }

    public boolean active() {
        return active;
    }

    private static int last(RowBlock block) {
        return block.firstChunk() + block.chunkCount() - 1;
    }

    /** The counter of one of the lanes that deliver here. */
    public long wordOf(Lane arrivals, OperatorMemory memory) {
        Transfer first = arrivals.transfers().getFirst();
        return memory.summaryAt(initiators[first.source()][first.chunk()], arrivals.index());
    }

    /** The counter that tells when the block's last chunk is here. */
    public long wordFor(RowBlock block, OperatorMemory memory) {
        int chunk = last(block);
        return memory.summaryAt(initiators[block.source()][chunk], lanes[block.source()][chunk]);
    }

    /** What that counter then holds. */
    public int valueFor(RowBlock block, int call) {
        int chunk = last(block);
        return value(call, places[block.source()][chunk], counts[block.source()][chunk]);
    }

    /** As what it is awaited. */
    public Awaited awaitedFor(RowBlock block) {
        return awaited[block.source()][last(block)];
    }

    /** What a lane writes after chunk number {@code place} of {@code count} to one destination. */
    public static int value(int call, int place, int count) {
        return (call - 1) * count + place;
    }
}
