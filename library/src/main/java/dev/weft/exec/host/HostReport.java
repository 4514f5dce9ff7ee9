package dev.weft.exec.host;

import dev.weft.fabric.FabricException;
import dev.weft.fabric.FailureReport;
import dev.weft.fabric.transport.Awaited;
import dev.weft.op.Operator.View;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.StepPlan;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Reports the state of a rank whose call ends in an error, as part of that error. It reads words
 * that the protocol sets anyway, so it costs nothing until then. Each worker says what it was
 * waiting for; the caller assembles the report once all workers have ended.
 */
final class HostReport {

    private final HostCall call;
    private final List<StepPlan> plans;
    private final List<MoverWorker> lanes;
    private final List<FailureReport.Wait> waits = new ArrayList<>();

    HostReport(HostCall call, List<StepPlan> plans, List<MoverWorker> lanes) {
        this.call = call;
        this.plans = plans;
        this.lanes = lanes;
    }

    /** Notes that a worker, or the caller, has given up. */
    synchronized void ended(Throwable cause) {
        if (cause instanceof FabricException failure) {
            failure.report().ifPresent(report -> waits.addAll(report.waits()));
        }
    }

    /** Attaches the report; call it once no worker runs. */
    synchronized void attachTo(FabricException failure) {
        List<FailureReport.Peer> peers = new ArrayList<>();
        failure.report().ifPresent(known -> known.peers().forEach(p -> peers.add(started(p))));
        boolean moved = call.number > 0 && call.view != View.COMPUTE_ONLY;
        failure.attach(
                new FailureReport(
                        call.fabric.worldRank(call.rank()),
                        call.memory.region().name(),
                        call.number,
                        waits,
                        moved ? received() : List.of(),
                        moved
                                ? lanes.stream().map(lane -> lane.sent(this::what)).toList()
                                : List.of(),
                        peers));
    }

    private String what(Part part) {
        return RankSteps.what(plans.get(part.rank()).buffers().get(part.buffer()));
    }

    /**
     * By the reuse rule, the peer is in the same call as this rank, the one before or the one
     * after.
     */
    private FailureReport.Peer started(FailureReport.Peer peer) {
        for (int r = 0; r < call.fabric.size(); r++) {
            if (call.fabric.worldRank(r) == peer.rank()) {
                int next = call.number + 1;
                return peer.started(
                        isStarted(r, next) ? next : isStarted(r, next - 1) ? next - 1 : next - 2);
            }
        }
        return peer;
    }

    private boolean isStarted(int rank, int number) {
        return call.fabric.reached(call.memory.region(), rank, StepMemory.START_AT, number);
    }

    /** What has come of each shard's chunks: one counts once all signals about it have come. */
    private List<FailureReport.Received> received() {
        Map<Integer, Map<Integer, Boolean>> bySource = new TreeMap<>();
        for (Need need : call.steps.arrivals()) {
            Awaited what = need.what();
            bySource.computeIfAbsent(what.source(), source -> new TreeMap<>())
                    .merge(what.chunk(), call.hasReached(need), Boolean::logicalAnd);
        }
        List<FailureReport.Received> all = new ArrayList<>();
        bySource.forEach(
                (source, chunks) -> {
                    int arrived = 0;
                    int last = -1;
                    int missing = -1;
                    for (Map.Entry<Integer, Boolean> chunk : chunks.entrySet()) {
                        if (chunk.getValue()) {
                            arrived++;
                            last = chunk.getKey();
                        } else if (missing < 0) {
                            missing = chunk.getKey();
                        }
                    }
                    all.add(
                            new FailureReport.Received(
                                    call.fabric.worldRank(source),
                                    arrived,
                                    chunks.size(),
                                    last,
                                    missing));
                });
        return all;
    }
}
