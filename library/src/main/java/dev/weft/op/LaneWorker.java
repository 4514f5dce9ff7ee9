package dev.weft.op;

import dev.weft.fabric.Awaited;
import dev.weft.fabric.Fabric;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.plan.Lane;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.plan.Transfer;
import dev.weft.tensor.Matrix;
import java.lang.foreign.MemorySegment;

/**
 * Executes one lane: for each transfer in order, waits for what it needs, moves the chunk, and
 * raises its flag at the destination. The flag's release pairs with the acquire of whoever waits
 * for the chunk: the destination's compute workers, and its lanes that forward.
 */
final class LaneWorker implements Runnable {

    private final String name;
    private final Fabric fabric;
    private final OperatorMemory memory;
    private final CallState state;
    private final Shards shards;
    private final long cols;
    private final Transfer[] transfers;
    private final Chunk[] chunks;
    private final Awaited[] needs;
    private final SpanLog log;

    LaneWorker(
            Lane lane,
            RankPlan plan,
            Arrivals arrivals,
            Fabric fabric,
            OperatorMemory memory,
            CallState state) {
        Chunks cut = plan.chunks();
        this.name = "lane-" + lane.index();
        this.fabric = fabric;
        this.memory = memory;
        this.state = state;
        this.shards = cut.shards();
        this.cols = cut.cols();
        this.transfers = lane.transfers().toArray(Transfer[]::new);
        this.chunks = new Chunk[transfers.length];
        this.needs = new Awaited[transfers.length];
        for (int i = 0; i < transfers.length; i++) {
            Transfer transfer = transfers[i];
            chunks[i] = cut.chunk(transfer.source(), transfer.chunk());
            if (transfer.initiator() == Transfer.Initiator.RECEIVER) {
                needs[i] = new Awaited("the shard", transfer.from(), transfer.source(), -1);
            } else if (transfer.isForward()) {
                needs[i] = arrivals.of(transfer.source(), transfer.chunk());
            }
        }
        this.log = new SpanLog(name, 2 * transfers.length);
    }

    SpanLog log() {
        return log;
    }

    @Override
    public String toString() {
        return name;
    }

    @Override
    public void run() {
        log.clear();
        if (state.view == View.COMPUTE_ONLY) {
            return;
        }
        for (int i = 0; i < transfers.length; i++) {
            awaitNeed(i);
            move(i);
            fabric.worked();
        }
    }

    /** A get needs the owner to have started the call; a forward needs the chunk to be here. */
    private void awaitNeed(int i) {
        Transfer transfer = transfers[i];
        boolean get = transfer.initiator() == Transfer.Initiator.RECEIVER;
        if (!get && !transfer.isForward()) {
            return;
        }
        int home = get ? transfer.from() : fabric.rank();
        long word =
                get ? OperatorMemory.START_AT : memory.flagAt(transfer.source(), transfer.chunk());
        if (fabric.reached(memory.region(), home, word, state.call)) {
            return;
        }
        long start = System.nanoTime();
        fabric.await(memory.region(), home, word, state.call, needs[i]);
        log.add(
                Timeline.Kind.WAIT,
                transfer.source(),
                transfer.from(),
                chunks[i].firstRow(),
                chunks[i].rows(),
                start);
    }

    private void move(int i) {
        Transfer transfer = transfers[i];
        Chunk chunk = chunks[i];
        long start = System.nanoTime();
        long gatheredRow = shards.firstRow(chunk.source()) + chunk.firstRow();
        Matrix to = memory.gathered(transfer.to(), state.call);
        if (transfer.isForward()) {
            Matrix from = memory.gathered(transfer.from(), state.call);
            copy(from, gatheredRow, to, gatheredRow, chunk);
        } else {
            Matrix from = memory.shard(transfer.from(), state.call);
            copy(from, chunk.firstRow(), to, gatheredRow, chunk);
        }
        fabric.signal(
                memory.region(),
                transfer.to(),
                memory.flagAt(transfer.source(), transfer.chunk()),
                state.call);
        int peer = transfer.to() == fabric.rank() ? transfer.from() : transfer.to();
        log.add(
                Timeline.Kind.TRANSFER,
                chunk.source(),
                peer,
                chunk.firstRow(),
                chunk.rows(),
                start);
    }

    private void copy(Matrix from, long fromRow, Matrix to, long toRow, Chunk chunk) {
        long rowBytes = chunk.cols() * from.dtype().bytes();
        if (chunk.cols() == cols) {
            MemorySegment.copy(
                    from.data(),
                    from.offset(fromRow, 0),
                    to.data(),
                    to.offset(toRow, 0),
                    chunk.rows() * rowBytes);
            return;
        }
        for (long r = 0; r < chunk.rows(); r++) {
            MemorySegment.copy(
                    from.data(),
                    from.offset(fromRow + r, chunk.firstCol()),
                    to.data(),
                    to.offset(toRow + r, chunk.firstCol()),
                    rowBytes);
        }
    }
}
