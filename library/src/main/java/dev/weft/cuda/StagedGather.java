package dev.weft.cuda;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.RowGather;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Transfer;
import java.util.List;
import java.util.function.IntConsumer;

/**
 * In place of lanes where nothing is to overlap and the fabric brings an all-gather of its own: one
 * collective call once all shards are in host memory, after which all flags are raised. The thread
 * that has told of this rank's shard.
 */
final class StagedGather implements IntConsumer {

    private final RowGather gather;
    private final Transport fabric;
    private final Region region;
    private final StagedLayout layout;
    private final List<Transfer> arrivals;
    private final Awaited[] shards;
    private final long[] rows;

    StagedGather(
            RowGather gather,
            Transport fabric,
            Region region,
            StagedLayout layout,
            List<Transfer> arrivals) {
        this.gather = gather;
        this.fabric = fabric;
        this.region = region;
        this.layout = layout;
        this.arrivals = arrivals;
        this.shards = new Awaited[fabric.size()];
        this.rows = new long[fabric.size()];
        for (int r = 0; r < rows.length; r++) {
            shards[r] = new Awaited(Awaited.SHARD, r, r, -1);
            rows[r] = layout.chunks().shards().rows(r);
        }
    }

    @Override
    public void accept(int call) {
        // A gather that has begun cannot be left: nobody begins before all are sure to follow.
        for (int r = 0; r < shards.length; r++) {
            int staged = layout.staged(call, r, layout.chunks().count(r) - 1);
            fabric.await(region, r, StagedLayout.STAGED_AT, staged, shards[r]);
        }
        int rank = fabric.rank();
        gather.gather(
                region,
                layout.shardAt(rank, call & 1),
                layout.landingAt(rank, call & 1),
                layout.pitchBytes(),
                rows);
        for (int i = 0; i < arrivals.size(); i++) {
            fabric.signal(region, rank, layout.flagAt(arrivals.get(i).tag()), call);
        }
    }
}
