package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;
import java.util.ArrayList;
import java.util.List;

/**
 * Runs the plans of all ranks symbolically, to find out whether everything finishes. Every lane and
 * every rank's consumption is a worker that takes its items strictly in order.
 */
final class DryRun {

    private final List<RankPlan> plans;
    private final Chunks chunks;

    /** The same on all ranks. */
    private final Storage storage;

    /** Workers: the lanes of all ranks, then one consumer per rank. */
    private final List<Lane> lanes = new ArrayList<>();

    /** Per worker: how many of its items are done. */
    private final int[] done;

    /** Per rank: how many chunks of the current block are known to have arrived. */
    private final int[] chunksSeen;

    /** Per arrival event: whether it has happened. */
    private final boolean[] arrived;

    private final ShardReleases releases;

    /** Events: arrivals first, then releases by rank. */
    private final Waiters waiters;

    private DryRun(List<RankPlan> plans) {
        this.plans = plans;
        this.chunks = plans.getFirst().chunks();
        this.storage = plans.getFirst().storage();
        plans.forEach(plan -> lanes.addAll(plan.lanes()));
        int ranks = plans.size();
        int workers = lanes.size() + ranks;
        this.done = new int[workers];
        this.chunksSeen = new int[ranks];
        this.arrived = new boolean[Math.multiplyExact(ranks, chunks.total())];
        this.waiters = new Waiters(arrived.length + ranks, workers);
        this.releases = new ShardReleases(plans);
    }

    /**
     * Throws a {@link PlanException} that names a waiting transfer or block unless everything
     * finishes.
     */
    static void run(List<RankPlan> plans) {
        DryRun run = new DryRun(plans);
        for (int worker = run.waiters.take(); worker >= 0; worker = run.waiters.take()) {
            if (worker < run.lanes.size()) {
                run.runLane(worker);
            } else {
                run.runConsumer(worker, worker - run.lanes.size());
            }
        }
        run.checkAllFinished();
    }

    private void runLane(int worker) {
        List<Transfer> transfers = lanes.get(worker).transfers();
        while (done[worker] < transfers.size()) {
            Transfer transfer = transfers.get(done[worker]);
            int need = arrival(transfer.from(), transfer.tag());
            if (transfer.isForward() && !arrived[need]) {
                waiters.await(need, worker);
                return;
            }
            if (releases.released(transfer.to()) < transfer.credit()) {
                waiters.await(release(transfer.to()), worker);
                return;
            }
            done[worker]++;
            finish(transfer);
        }
    }

    private void finish(Transfer transfer) {
        int arrival = arrival(transfer.to(), transfer.tag());
        arrived[arrival] = true;
        waiters.wake(arrival);
        if (transfer.isForward() && releases.used(transfer.from(), transfer.source())) {
            waiters.wake(release(transfer.from()));
        }
    }

    private void runConsumer(int worker, int rank) {
        List<RowBlock> blocks = plans.get(rank).consumption();
        while (done[worker] < blocks.size()) {
            RowBlock block = blocks.get(done[worker]);
            int missing = missingArrival(rank, block);
            if (missing >= 0) {
                waiters.await(missing, worker);
                return;
            }
            done[worker]++;
            chunksSeen[rank] = 0;
            if (block.source() != rank && releases.used(rank, block.source())) {
                waiters.wake(release(rank));
            }
        }
    }

    /** The first arrival that the block still needs, or -1. */
    private int missingArrival(int rank, RowBlock block) {
        if (block.source() == rank || storage == Storage.IN_PLACE) {
            return -1;
        }
        for (; chunksSeen[rank] < block.chunkCount(); chunksSeen[rank]++) {
            int chunk = block.firstChunk() + chunksSeen[rank];
            int arrival = arrival(rank, chunks.tag(block.source(), chunk));
            if (!arrived[arrival]) {
                return arrival;
            }
        }
        return -1;
    }

    private int arrival(int rank, int tag) {
        return rank * chunks.total() + tag;
    }

    private int release(int rank) {
        return arrived.length + rank;
    }

    private void checkAllFinished() {
        int worker = 0;
        for (RankPlan plan : plans) {
            for (Lane lane : plan.lanes()) {
                if (done[worker] < lane.transfers().size()) {
                    throw waiting(plan.rank(), lane.transfers().get(done[worker]));
                }
                worker++;
            }
        }
        for (RankPlan plan : plans) {
            if (done[worker] < plan.consumption().size()) {
                RowBlock block = plan.consumption().get(done[worker]);
                throw new PlanException(
                        plan.rank(),
                        block,
                        "waits forever: block from row " + block.firstRow() + " on is incomplete");
            }
            worker++;
        }
    }

    private PlanException waiting(int rank, Transfer transfer) {
        boolean forArrival =
                transfer.isForward() && !arrived[arrival(transfer.from(), transfer.tag())];
        String need =
                forArrival
                        ? "the chunk to arrive at rank " + transfer.from()
                        : "%s released shards, rank %s releases %s"
                                .formatted(
                                        transfer.credit(),
                                        transfer.to(),
                                        releases.released(transfer.to()));
        return new PlanException(
                rank,
                transfer,
                "waits forever: transfer from rank %s to rank %s needs %s"
                        .formatted(transfer.from(), transfer.to(), need));
    }
}
