package dev.weft.cuda.exec;

import dev.weft.cuda.kernel.TileSchedule.Counter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Words behind the flags that count what each lane has delivered: after chunk i of the n that a
 * lane brings to a rank in a call, its word there holds (call - 1) n + i. Rows wait for the word of
 * the lane that brings them before they look at their flags. A word has one writer, the lane. Pure.
 *
 * @param words how many there are
 * @param arriving by flag: what tells of its chunk here; none for own chunks
 * @param lanes by lane and copy of this rank: what to write at the copy's destination
 */
public record LaneCounters(int words, Map<Integer, Counter> arriving, List<List<Counter>> lanes) {

    public LaneCounters {
        arriving = Map.copyOf(arriving);
        lanes = lanes.stream().map(List::copyOf).toList();
    }

    /**
     * @param firstWord the number of flags
     * @param mostLanes of any rank
     */
    public static LaneCounters of(RankPlan plan, int firstWord, int mostLanes) {
        Map<Integer, Counter> arriving = new HashMap<>();
        for (Lane lane : plan.arrivals()) {
            List<Counter> counters = counters(lane, firstWord, mostLanes);
            for (int i = 0; i < counters.size(); i++) {
                arriving.put(lane.transfers().get(i).tag(), counters.get(i));
            }
        }
        List<List<Counter>> lanes = new ArrayList<>();
        for (Lane lane : plan.lanes()) {
            lanes.add(counters(lane, firstWord, mostLanes));
        }
        return new LaneCounters(plan.ranks() * mostLanes, arriving, lanes);
    }

    private static List<Counter> counters(Lane lane, int firstWord, int mostLanes) {
        Map<Integer, Integer> counts = new HashMap<>();
        lane.transfers().forEach(transfer -> counts.merge(transfer.to(), 1, Integer::sum));
        Map<Integer, Integer> places = new HashMap<>();
        List<Counter> counters = new ArrayList<>();
        for (Transfer transfer : lane.transfers()) {
            boolean put = transfer.initiator() == Initiator.SENDER;
            int initiator = put ? transfer.from() : transfer.to();
            counters.add(
                    new Counter(
                            firstWord + initiator * mostLanes + lane.index(),
                            counts.get(transfer.to()),
                            places.merge(transfer.to(), 1, Integer::sum)));
        }
        return counters;
    }
}
