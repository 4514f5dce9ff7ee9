package dev.weft.op.exec;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.plan.Chunk;
import dev.weft.plan.RankPlan.Transfer;

/** A gather's memory as its lanes see it: a forward needs its chunk, a get its owner's start. */
record GatherLanes(OperatorMemory memory, Arrivals arrivals) implements LaneMemory {

    @Override
    public Region region() {
        return memory.region();
    }

    @Override
    public Move move(Transfer transfer, Chunk chunk, int half, long counterAt) {
        int fromBuffer =
                transfer.isForward() && isPut(transfer) ? arrivals.slot(transfer.source()) : 0;
        return memory.move(transfer, chunk, fromBuffer, half, counterAt);
    }

    private static boolean isPut(Transfer transfer) {
        return transfer.initiator() == Transfer.Initiator.SENDER;
    }

    @Override
    public String what(Transfer transfer) {
        return Awaited.CHUNK;
    }

    @Override
    public Awaited need(Transfer transfer) {
        Awaited chunk = Awaited.chunk(transfer.from(), transfer.source(), transfer.chunk());
        if (transfer.isForward()) {
            return isPut(transfer)
                    ? arrivals.of(transfer.source(), transfer.chunk())
                    : chunk.within(1);
        }
        if (memory.isStaged()) {
            return chunk;
        }
        return isPut(transfer)
                ? null
                : new Awaited(Awaited.SHARD, transfer.from(), transfer.source(), -1, 1);
    }

    @Override
    public long neededAt(Transfer transfer) {
        return transfer.isForward()
                ? memory.flagAt(transfer.source(), transfer.chunk())
                : memory.readyAt();
    }

    @Override
    public int needed(Transfer transfer, int call) {
        return transfer.isForward()
                ? call
                : memory.ready(call, transfer.source(), transfer.chunk());
    }
}
