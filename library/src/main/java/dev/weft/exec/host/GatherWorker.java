package dev.weft.exec.host;

import dev.weft.fabric.transport.RowGather;
import dev.weft.plan.Shards;
import dev.weft.plan.step.Signal;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;

/** Gathers all shards by the transport's own all-gather instead of copies. */
final class GatherWorker extends Worker {

    private final HostCall call;
    private final RowGather gather;
    private final int buffer;
    private final Runnable compareRows;
    private final long[] rows;
    private final Need[] starts;
    private final Need[] raisedByOthers;

    /**
     * @param buffer where the shards are gathered, one below the other
     * @param compareRows of all ranks, which have started: a gather of different ones might not end
     */
    GatherWorker(RowGather gather, int buffer, Shards shards, Runnable compareRows, HostCall call) {
        super(new SpanLog("gather", 1));
        this.gather = gather;
        this.buffer = buffer;
        this.compareRows = compareRows;
        this.call = call;
        this.raisedByOthers = call.steps.raisedByOthers().toArray(Need[]::new);
        this.rows = new long[shards.ranks()];
        this.starts = new Need[shards.ranks()];
        for (int r = 0; r < starts.length; r++) {
            starts[r] = call.steps.shard(r);
        }
    }

    @Override
    public void run() {
        log.clear();
        if (call.view == View.COMPUTE_ONLY) {
            return;
        }
        long start = System.nanoTime();
        // A rank that has started the call will also gather, whatever else it still waits for.
        for (Need need : starts) {
            call.await(need);
        }
        compareRows.run();
        for (int r = 0; r < rows.length; r++) {
            rows[r] = call.rows.shards().rows(r);
        }
        call.memory.gather(gather, buffer, rows, call.number);
        long all = 0;
        for (long count : rows) {
            all += count;
        }
        log.add(Timeline.Kind.TRANSFER, call.rank(), call.rank(), 0, all, start);
        for (RankSteps.Lane lane : call.steps.lanes()) {
            for (int i = 0; i < lane.copies().size(); i++) {
                raise(lane.copies().get(i).signal());
                call.end(lane.ends().get(i));
            }
        }
        for (Need need : raisedByOthers) {
            call.fabric.signal(
                    call.memory.region(), call.rank(), need.at(), need.value(call.number));
        }
    }

    /** Only for this rank: the others have gathered when their own gather says so. */
    private void raise(Signal signal) {
        if (signal.rank() != call.rank()) {
            return;
        }
        int value = (call.number - 1) * call.memory.stride() + (int) signal.value();
        call.fabric.signal(
                call.memory.region(), signal.rank(), StepMemory.wordAt(signal.word()), value);
    }
}
