package dev.weft.sim;

import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What has arrived at one rank, what it has released, and who waits for either. */
final class SimulatedRank {

    private static final double NEVER = -1;

    final RankPlan plan;
    private final Chunks chunks;

    /** By tag: when the chunk came, or {@link #NEVER}. */
    private final double[] arrivedNs;

    /** By tag: when it would have come at the earliest, had nothing been in its way. */
    private final double[] pathNs;

    private final List<LaneRun> waitingLanes = new ArrayList<>();

    /** Null where nothing is multiplied. */
    ProductRun product;

    private int missing;
    double lastArrivalNs;
    double doneNs;

    /** By source: which of the shards it is that are released, from 1 on. */
    private final int[] numbers;

    /** By that number: uses of the shard that are yet to come; empty where nothing is released. */
    private final int[] usesLeft;

    int released;

    SimulatedRank(RankPlan plan, SimulatedView view, boolean multiplies) {
        this.plan = plan;
        this.chunks = plan.chunks();
        this.arrivedNs = new double[chunks.total()];
        this.pathNs = new double[chunks.total()];
        Arrays.fill(arrivedNs, NEVER);
        int own = plan.rank();
        Arrays.fill(arrivedNs, chunks.tag(own, 0), chunks.tag(own, chunks.count(own)), 0);
        if (view == SimulatedView.COMPUTE_ONLY || plan.storage() == RankPlan.Storage.IN_PLACE) {
            Arrays.fill(arrivedNs, 0);
        } else {
            for (Lane lane : plan.arrivals()) {
                missing += lane.transfers().size();
            }
        }
        boolean pingPong = plan.storage() == RankPlan.Storage.PING_PONG;
        this.numbers = plan.releaseNumbers();
        this.usesLeft = new int[pingPong ? plan.ranks() : 0];
        if (pingPong) {
            countUses(multiplies);
        }
    }

    private void countUses(boolean multiplies) {
        if (multiplies) {
            for (RowBlock block : plan.consumption()) {
                usesLeft[numbers[block.source()]]++;
            }
        }
        for (Lane lane : plan.lanes()) {
            for (Transfer transfer : lane.transfers()) {
                usesLeft[numbers[transfer.source()]]++;
            }
        }
        release();
    }

    boolean hasArrived(int tag) {
        return arrivedNs[tag] != NEVER;
    }

    double arrivedNs(int tag) {
        return arrivedNs[tag];
    }

    double pathNs(int tag) {
        return pathNs[tag];
    }

    boolean isComplete() {
        return missing == 0;
    }

    /** Something of this rank's own ends at {@code ns}. */
    void busyUntil(double ns) {
        doneNs = Math.max(doneNs, ns);
    }

    void arrive(int tag, double ns, double earliestNs) {
        arrivedNs[tag] = ns;
        pathNs[tag] = earliestNs;
        lastArrivalNs = Math.max(lastArrivalNs, ns);
        missing--;
        wakeLanes();
        if (product != null) {
            product.arrived();
        }
    }

    void await(LaneRun lane) {
        waitingLanes.add(lane);
    }

    private void wakeLanes() {
        for (int i = 0; i < waitingLanes.size(); i++) {
            if (waitingLanes.get(i).isReady()) {
                waitingLanes.remove(i--).wake();
            }
        }
    }

    /** A block or a forward of a shard is done. */
    void used(int source) {
        if (usesLeft.length > 0 && source != plan.rank()) {
            usesLeft[numbers[source]]--;
            release();
            wakeLanes();
        }
    }

    private void release() {
        while (released < plan.ranks() - 1 && usesLeft[released + 1] <= 0) {
            released++;
        }
    }
}
