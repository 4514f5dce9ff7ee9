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
     * @param counterAt the word in which the lane counts what it has brought there, or -1
     */
    Move move(Transfer transfer, Chunk chunk, int half, long counterAt);

    /** What a transfer moves, in the same words as the waits for it. */
    String what(Transfer transfer);

    /** What must have happened before a transfer starts; null if the call's start is enough. */
    Awaited need(Transfer transfer);

    /** The word of the sender's part that signals it. */
    long neededAt(Transfer transfer);

    /** The value that this word must have reached. */
    int needed(Transfer transfer, int call);
}
