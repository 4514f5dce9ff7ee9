package dev.weft.op.exec;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.plan.Chunk;
import dev.weft.plan.RankPlan.Transfer;

/** The memory between which a rank's lanes move chunks, and the words that they wait for. */
public interface LaneMemory {

    Region region();

    /**
     * The transfer of one chunk in the calls that use {@code half}.
     *
     * @param counterAt where the lane counts what it has brought there, or -1
     */
    Move move(Transfer transfer, Chunk chunk, int half, long counterAt);

    /** What a transfer moves, in the words of whoever waits for it. */
    String what(Transfer transfer);

    /** What must have come before a transfer starts; null where it is there with the call. */
    Awaited need(Transfer transfer);

    /** The word of the sender's part that tells of it. */
    long neededAt(Transfer transfer);

    /** What that word has reached then. */
    int needed(Transfer transfer, int call);
}
