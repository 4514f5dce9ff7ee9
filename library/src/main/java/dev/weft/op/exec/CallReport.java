package dev.weft.op.exec;

import dev.weft.fabric.FabricException;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.View;
import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan;
import java.util.ArrayList;
import java.util.List;

/**
 * How things stand with a rank whose call ends in an error, for that error. Reads words that the
 * protocol sets anyway, and costs nothing before. Any worker tells what it waited for; the caller
 * puts it together once all workers have ended.
 */
public final class CallReport {

    private final RankPlan plan;
    private final Transport fabric;
    private final OperatorMemory memory;
    private final CallState state;
    private final Arrivals arrivals;
    private final List<LaneWorker> lanes;
    private final List<FailureReport.Wait> waits = new ArrayList<>();

    public CallReport(Workspace workspace, List<LaneWorker> lanes) {
        this.plan = workspace.plan();
        this.fabric = workspace.fabric();
        this.memory = workspace.memory();
        this.state = workspace.state();
        this.arrivals = workspace.arrivals();
        this.lanes = lanes;
    }

    /** A worker, or the caller, has given up. */
    public synchronized void ended(Throwable cause) {
        if (cause instanceof FabricException failure) {
            failure.report().ifPresent(report -> waits.addAll(report.waits()));
        }
    }

    /** Once no worker runs. */
    public synchronized void attachTo(FabricException failure) {
        List<FailureReport.Peer> peers = new ArrayList<>();
        failure.report().ifPresent(known -> known.peers().forEach(p -> peers.add(started(p))));
        boolean moved = state.view != View.COMPUTE_ONLY && state.call > 0;
        List<FailureReport.Sent> sent = new ArrayList<>();
        for (LaneWorker lane : moved ? lanes : List.<LaneWorker>of()) {
            sent.add(lane.sent());
        }
        failure.attach(
                new FailureReport(
                        fabric.worldRank(plan.rank()),
                        memory.region().name(),
                        state.call,
                        waits,
                        moved ? received() : List.of(),
                        sent,
                        peers));
    }

    /** By the reuse rule it is in this rank's call, in the one before or in the one after. */
    private FailureReport.Peer started(FailureReport.Peer peer) {
        for (int r = 0; r < fabric.size(); r++) {
            if (fabric.worldRank(r) == peer.rank()) {
                return peer.started(
                        isStarted(r, state.call + 1)
                                ? state.call + 1
                                : isStarted(r, state.call) ? state.call : state.call - 1);
            }
        }
        return peer;
    }

    private boolean isStarted(int rank, int call) {
        return fabric.reached(memory.region(), rank, OperatorMemory.START_AT, call);
    }

    private List<FailureReport.Received> received() {
        List<FailureReport.Received> all = new ArrayList<>();
        Chunks chunks = plan.chunks();
        for (int source = 0; source < plan.ranks(); source++) {
            if (source == plan.rank() || plan.storage() == RankPlan.Storage.IN_PLACE) {
                continue;
            }
            int arrived = 0;
            int last = -1;
            int missing = -1;
            for (int c = 0; c < chunks.count(source); c++) {
                long flag = memory.flagAt(source, c);
                Awaited chunk = arrivals.of(source, c);
                if (fabric.reached(memory.region(), plan.rank(), flag, state.call, chunk)) {
                    arrived++;
                    last = c;
                } else if (missing < 0) {
                    missing = c;
                }
            }
            all.add(
                    new FailureReport.Received(
                            fabric.worldRank(source),
                            arrived,
                            chunks.count(source),
                            last,
                            missing));
        }
        return all;
    }
}
