package dev.weft.op.exec;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.Operator.View;
import dev.weft.op.Timeline;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;

/** Gathers all shards by the fabric's own all-gather instead of lanes, and raises all flags. */
public final class GatherWorker extends Worker {

    private final Transport fabric;
    private final RowGather gather;
    private final RankPlan plan;
    private final OperatorMemory memory;
    private final Summaries summaries;
    private final CallState state;
    private final Awaited[] starts;

    public GatherWorker(RowGather gather, Workspace workspace) {
        super(new SpanLog("gather", 1));
        this.gather = gather;
        this.fabric = workspace.fabric();
        this.plan = workspace.plan();
        this.memory = workspace.memory();
        this.summaries = workspace.summaries();
        this.state = workspace.state();
        this.starts = new Awaited[plan.ranks()];
        for (int r = 0; r < starts.length; r++) {
            Awaited shard = new Awaited(Awaited.SHARD, r, r, -1);
            starts[r] = memory.isStaged() ? shard : shard.within(1);
        }
    }

    @Override
    public void run() {
        log.clear();
        if (state.view == View.COMPUTE_ONLY) {
            return;
        }
        long start = System.nanoTime();
        // A rank that has started the call will also gather, whatever else it still waits for.
        for (int r = 0; r < starts.length; r++) {
            int ready = memory.ready(state.call, r, plan.chunks().count(r) - 1);
            fabric.await(memory.region(), r, memory.readyAt(), ready, starts[r]);
        }
        memory.gatherBy(gather, plan.rank(), state.call);
        long rows = plan.chunks().shards().totalRows();
        log.add(Timeline.Kind.TRANSFER, plan.rank(), plan.rank(), 0, rows, start);
        for (Lane lane : plan.arrivals()) {
            for (Transfer transfer : lane.transfers()) {
                long flag = memory.flagAt(transfer.source(), transfer.chunk());
                fabric.signal(memory.region(), plan.rank(), flag, state.call);
            }
            if (summaries.active()) {
                int count = lane.transfers().size();
                long word = summaries.wordOf(lane, memory);
                int value = Summaries.value(state.call, count, count);
                fabric.signal(memory.region(), plan.rank(), word, value);
            }
        }
    }
}
