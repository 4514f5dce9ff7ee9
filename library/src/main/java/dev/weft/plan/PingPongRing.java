package dev.weft.plan;

import dev.weft.plan.GatherSteps.Storage;
import dev.weft.plan.step.StepPlan;
import java.util.List;

/**
 * Writes the plans of {@link Algorithm#pingPongRing}: the shard that arrives in step 1, 2, ... R-1
 * lands in buffer {@code step % 2}, and from step 3 on only after the receiver has released the
 * shard of two steps before. It visits all ranks one by one, whatever their hosts. Each lane
 * carries its segments of every shard, and no lane waits for another one of the same rank.
 */
record PingPongRing() implements GatherWriter {

    @Override
    public String label() {
        return Algorithm.RING.label();
    }

    @Override
    public boolean isSymmetric() {
        return true;
    }

    @Override
    public List<StepPlan> plans(GatherRequest request) {
        Hosts apart = Hosts.apart(request.ranks());
        int lanes = Planner.lanes(Algorithm.RING, apart, request.lanes());
        return GatherSteps.write(
                request,
                GatherSteps.Form.of(
                        request,
                        Storage.PING_PONG,
                        false,
                        lanes,
                        Planner.leastRows(request.hosts())),
                Planner.drafts(
                        request, lanes, () -> RingRouting.oneWay(request.chunks(), apart, lanes)));
    }
}
