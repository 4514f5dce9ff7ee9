package dev.weft.cuda.exec;

import dev.weft.cuda.kernel.TileSchedule.Counter;
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
     * @param ranks of the group
     * @param mostLanes of any rank
     */
    public static LaneCounters of(CopyList list, int ranks, int mostLanes) {
        Map<Integer, Counter> arriving = new HashMap<>();
        for (CopyList.Line line : list.arriving()) {
            int word = list.flags() + line.by() * mostLanes + line.lane();
            List<Counter> counters = counters(line.copies(), word);
            for (int i = 0; i < counters.size(); i++) {
                arriving.put(line.copies().get(i).flag(), counters.get(i));
            }
        }
        List<List<Counter>> lanes = new ArrayList<>();
        for (int lane = 0; lane < list.lanes().size(); lane++) {
            int word = list.flags() + list.rank() * mostLanes + lane;
            lanes.add(counters(list.lanes().get(lane), word));
        }
        return new LaneCounters(ranks * mostLanes, arriving, lanes);
    }

    /** A lane has a word at every rank. */
    private static List<Counter> counters(List<CopyList.Copy> lane, int word) {
        Map<Integer, Integer> counts = new HashMap<>();
        lane.forEach(copy -> counts.merge(copy.to(), 1, Integer::sum));
        Map<Integer, Integer> places = new HashMap<>();
        List<Counter> counters = new ArrayList<>();
        for (CopyList.Copy copy : lane) {
            int place = places.merge(copy.to(), 1, Integer::sum);
            counters.add(new Counter(word, counts.get(copy.to()), place));
        }
        return counters;
    }
}
