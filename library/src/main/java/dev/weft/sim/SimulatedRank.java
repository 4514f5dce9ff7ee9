package dev.weft.sim;

import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.Reduction;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * What has happened to the chunks of one rank, what it has released, and what waits for either. If
 * rows of A arrive, an event's number is the chunk's tag: each happens at most once. Sums of a
 * chunk have several events, kind after kind.
 */
final class SimulatedRank {

    /** All sums that others send to be added. The kinds before it are the slots of that name. */
    static final int PARTS = 2;

    /** This rank's product, on top of earlier sums. */
    static final int MULTIPLIED = 3;

    /** This rank has added everything to the sums, and has finished its rows if it wants them. */
    static final int SUMMED = 4;

    private static final int KINDS = 5;

    final RankPlan plan;
    private final Chunks chunks;
    private final boolean sums;

    /** By event: how many times it has yet to happen. */
    private final int[] left;

    /** By event: when it happened last. */
    private final double[] happenedNs;

    /** By event: the earliest time it could have happened, with nothing in its way. */
    private final double[] pathNs;

    /** By event of arriving sums: how many times they arrive, and the last rank to send them. */
    private final int[] arriving;

    private final int[] senders;

    private final List<LaneRun> waitingLanes = new ArrayList<>();

    /** Null if nothing is multiplied. */
    ProductRun product;

    private int missing;
    double lastArrivalNs;
    double doneNs;

    /** By source: the number of its shard in the order of releases, from 1. */
    private final int[] numbers;

    /** By that number: remaining uses of the shard; empty if nothing is released. */
    private final int[] usesLeft;

    int released;

    SimulatedRank(RankPlan plan, SimulatedView view, boolean multiplies) {
        this.plan = plan;
        this.chunks = plan.chunks();
        this.sums = plan.isSummed();
        int events = (sums ? KINDS : 1) * chunks.total();
        this.left = new int[events];
        this.happenedNs = new double[events];
        this.pathNs = new double[events];
        this.arriving = new int[sums ? events : 0];
        this.senders = new int[sums ? events : 0];
        if (view != SimulatedView.COMPUTE_ONLY) {
            for (Lane lane : plan.arrivals()) {
                lane.transfers().forEach(this::expect);
            }
            if (sums) {
                Arrays.fill(left, event(MULTIPLIED, 0), events, 1);
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

    private void expect(Transfer transfer) {
        int event = arrival(transfer, transfer.tag());
        left[event]++;
        missing++;
        if (sums) {
            arriving[event]++;
            senders[event] = transfer.from();
        }
    }

    int event(int kind, int tag) {
        return kind * chunks.total() + tag;
    }

    /** The event that a transfer has delivered its chunk, which has this tag here. */
    int arrival(Transfer transfer, int tag) {
        return sums ? event(Math.min(transfer.slot(), PARTS), tag) : tag;
    }

    /** What must have happened before this rank sends a chunk; -1 for nothing. */
    int need(Transfer transfer, int tag) {
        if (!sums) {
            return transfer.isForward() ? tag : -1;
        }
        if (transfer.slot() != Reduction.WHOLE) {
            return event(arriving[event(PARTS, tag)] > 0 ? SUMMED : MULTIPLIED, tag);
        }
        int whole = event(Reduction.WHOLE, tag);
        return arriving[whole] > 0 ? whole : event(SUMMED, tag);
    }

    /** How many times sums arrive. */
    int arriving(int event) {
        return arriving[event];
    }

    /** The rank that sends arriving sums, or the one that multiplied them if none arrive. */
    int sender(int event) {
        return arriving[event] > 0 ? senders[event] : plan.rank();
    }

    boolean has(int event) {
        return left[event] == 0;
    }

    double happenedNs(int event) {
        return happenedNs[event];
    }

    double pathNs(int event) {
        return pathNs[event];
    }

    boolean isComplete() {
        return missing == 0;
    }

    /** Some work of this rank ends at {@code ns}. */
    void busyUntil(double ns) {
        doneNs = Math.max(doneNs, ns);
    }

    void arrive(int event, double ns, double earliestNs) {
        lastArrivalNs = Math.max(lastArrivalNs, ns);
        missing--;
        happen(event, ns, earliestNs);
    }

    void happen(int event, double ns, double earliestNs) {
        left[event]--;
        happenedNs[event] = ns;
        pathNs[event] = Math.max(pathNs[event], earliestNs);
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

    /** Notes that a block or a forward of a shard is done. */
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
