package dev.weft.cuda;

import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.ChunkMover;
import dev.weft.fabric.transport.Move;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.plan.Lane;
import dev.weft.plan.Transfer;
import java.util.List;
import java.util.function.IntConsumer;

/**
 * One lane of a plan between the host memories of ranks: waits for each chunk to be where it comes
 * from, its owner's or a forwarder's host memory, and gives it to a mover. One thread at a time.
 */
final class StagedLane implements IntConsumer, AutoCloseable {

    private final Transport fabric;
    private final Region region;
    private final StagedLayout layout;
    private final List<Transfer> transfers;
    private final Awaited[] needs;
    private final Move[][] moves;
    private final ChunkMover mover;

    /**
     * @param bringers by tag: the rank whose lane brings the chunk to this one
     */
    StagedLane(Transport fabric, Region region, StagedLayout layout, Lane lane, int[] bringers) {
        this.fabric = fabric;
        this.region = region;
        this.layout = layout;
        this.transfers = lane.transfers();
        this.needs = new Awaited[transfers.size()];
        this.moves = new Move[StagedLayout.SLOTS][transfers.size()];
        for (int i = 0; i < needs.length; i++) {
            Transfer transfer = transfers.get(i);
            boolean own = transfer.from() == fabric.rank();
            int writer = own && transfer.isForward() ? bringers[transfer.tag()] : transfer.from();
            needs[i] = Awaited.chunk(writer, transfer.source(), transfer.chunk());
            for (int slot = 0; slot < StagedLayout.SLOTS; slot++) {
                moves[slot][i] = layout.move(region, transfer, slot);
            }
        }
        this.mover = fabric.mover(ended -> fabric.worked());
    }

    @Override
    public void accept(int call) {
        for (int i = 0; i < needs.length; i++) {
            awaitNeed(transfers.get(i), call, needs[i]);
            mover.move(i, moves[call & 1][i], call, 0);
        }
        mover.awaitAll();
    }

    private void awaitNeed(Transfer transfer, int call, Awaited need) {
        if (transfer.isForward()) {
            fabric.await(region, transfer.from(), layout.flagAt(transfer.tag()), call, need);
        } else {
            int staged = layout.staged(call, transfer.source(), transfer.chunk());
            fabric.await(region, transfer.from(), StagedLayout.STAGED_AT, staged, need);
        }
    }

    @Override
    public void close() {
        mover.close();
    }
}
