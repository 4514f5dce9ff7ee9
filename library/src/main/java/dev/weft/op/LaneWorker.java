package dev.weft.op;

import dev.weft.fabric.Awaited;
import dev.weft.fabric.Fabric;
import dev.weft.plan.Chunk;
import dev.weft.plan.Chunks;
import dev.weft.plan.Lane;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Transfer;
import dev.weft.tensor.Matrix;

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
    private final Releases releases;
    private final boolean credited;
    private final boolean summarised;
    private final int lane;
    private final Transfer[] transfers;
    private final Chunk[] chunks;
    private final Awaited[] needs;
    private final Awaited[] credits;
    private final int[] fromBuffers;
    private final int[] places;
    private final int[] counts;
    private final SpanLog log;

    LaneWorker(Lane lane, Workspace workspace) {
        Chunks cut = workspace.plan().chunks();
        Arrivals arrivals = workspace.arrivals();
        this.name = "lane-" + lane.index();
        this.lane = lane.index();
        this.fabric = workspace.fabric();
        this.memory = workspace.memory();
        this.state = workspace.state();
        this.releases = workspace.releases();
        this.summarised = workspace.summaries().active();
        this.credited = workspace.plan().storage() == RankPlan.Storage.PING_PONG;
        this.transfers = lane.transfers().toArray(Transfer[]::new);
        this.chunks = new Chunk[transfers.length];
        this.needs = new Awaited[transfers.length];
        this.credits = new Awaited[transfers.length];
        this.fromBuffers = new int[transfers.length];
        this.places = new int[transfers.length];
        this.counts = new int[workspace.plan().ranks()];
        for (int i = 0; i < transfers.length; i++) {
            Transfer transfer = transfers[i];
            chunks[i] = cut.chunk(transfer.source(), transfer.chunk());
            if (transfer.initiator() == Transfer.Initiator.RECEIVER) {
                needs[i] = new Awaited("the shard", transfer.from(), transfer.source(), -1);
            } else if (transfer.isForward()) {
                needs[i] = arrivals.of(transfer.source(), transfer.chunk());
                fromBuffers[i] = arrivals.slot(transfer.source());
            }
            credits[i] = Awaited.of("a free buffer", transfer.to());
            places[i] = ++counts[transfer.to()];
        }
        // Two waits and a move each.
        this.log = new SpanLog(name, 3 * transfers.length);
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
            if (credited) {
                int released = releases.needed(state.call, transfers[i].credit());
                await(i, transfers[i].to(), OperatorMemory.RELEASED_AT, released, credits[i]);
            }
            move(i);
            releases.used(transfers[i].source());
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
        await(i, home, word, state.call, needs[i]);
    }

    private void await(int i, int home, long word, int value, Awaited need) {
        if (fabric.reached(memory.region(), home, word, value)) {
            return;
        }
        long start = System.nanoTime();
        fabric.await(memory.region(), home, word, value, need);
        log.add(
                Timeline.Kind.WAIT,
                transfers[i].source(),
                need.writer(),
                chunks[i].firstRow(),
                chunks[i].rows(),
                start);
    }

    private void move(int i) {
        Transfer transfer = transfers[i];
        Chunk chunk = chunks[i];
        long start = System.nanoTime();
        boolean forward = transfer.isForward();
        Matrix from =
                forward
                        ? memory.landing(transfer.from(), fromBuffers[i], state.call)
                        : memory.shard(transfer.from(), state.call);
        long rowThere = memory.landingRow(chunk.source()) + chunk.firstRow();
        long colThere = memory.landingCol(chunk.source()) + chunk.firstCol();
        memory.landing(transfer.to(), transfer.slot(), state.call)
                .copyBlock(
                        from,
                        forward ? rowThere : chunk.firstRow(),
                        forward ? colThere : chunk.firstCol(),
                        rowThere,
                        colThere,
                        chunk.rows(),
                        chunk.cols());
        fabric.signal(
                memory.region(),
                transfer.to(),
                memory.flagAt(transfer.source(), transfer.chunk()),
                state.call);
        if (summarised) {
            fabric.signal(
                    memory.region(),
                    transfer.to(),
                    memory.summaryAt(fabric.rank(), lane),
                    Summaries.value(state.call, places[i], counts[transfer.to()]));
        }
        int peer = transfer.to() == fabric.rank() ? transfer.from() : transfer.to();
        log.add(
                Timeline.Kind.TRANSFER,
                chunk.source(),
                peer,
                chunk.firstRow(),
                chunk.rows(),
                start);
    }
}
