package dev.weft.op.exec;

import dev.weft.fabric.transport.Awaited;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.Transfer;
import java.util.Arrays;

/**
 * Counters of what each lane has delivered, as an alternative to several flags per row block. A
 * counter at a destination belongs to one lane of one rank, its only writer. After chunk i of the n
 * that the lane brings there in a call, it holds (call - 1) n + i. This value follows from the
 * call's number, so calls that move nothing leave no gap. A block that arrives by several lanes
 * waits for the counter of each.
 */
public final class Summaries {

    private final boolean active;
    private final int rank;

    /** By source and chunk, at this rank. */
    private final Place[][] places;

    /** The counter that covers a chunk, the chunk's place in it, and the wait for it. */
    private record Place(int initiator, int lane, int place, int count, Awaited awaited) {}

    public Summaries(RankPlan plan, boolean active) {
        this.active = active;
        this.rank = plan.rank();
        this.places = new Place[active ? plan.ranks() : 0][];
        Arrays.setAll(places, source -> new Place[plan.chunks().count(source)]);
        if (active) {
            plan.arrivals().forEach(this::index);
        }
    }

    private void index(Lane lane) {
        int count = lane.transfers().size();
        int place = 0;
        for (Transfer transfer : lane.transfers()) {
            boolean put = transfer.initiator() == Transfer.Initiator.SENDER;
            int initiator = put ? transfer.from() : rank;
            // The lane may already have brought all of the next call.
            Awaited awaited =
                    Awaited.chunk(initiator, transfer.source(), transfer.chunk()).within(2 * count);
            places[transfer.source()][transfer.chunk()] =
                    new Place(initiator, lane.index(), ++place, count, awaited);
        }
    }

    public boolean active() {
        return active;
    }

    /** The counter of one of the lanes that deliver here. */
    public long wordOf(Lane arrivals, OperatorMemory memory) {
        Transfer first = arrivals.transfers().getFirst();
        return memory.summaryAt(
                places[first.source()][first.chunk()].initiator(), arrivals.index());
    }

    /** The counter that says when a chunk has arrived. */
    public long wordFor(int source, int chunk, OperatorMemory memory) {
        Place place = places[source][chunk];
        return memory.summaryAt(place.initiator(), place.lane());
    }

    /** The value that this counter must have reached. */
    public int valueFor(int source, int chunk, int call) {
        return value(call, places[source][chunk].place(), places[source][chunk].count());
    }

    /** The wait for it. */
    public Awaited awaitedFor(int source, int chunk) {
        return places[source][chunk].awaited();
    }

    /** What a lane writes after chunk number {@code place} of {@code count} to one destination. */
    public static int value(int call, int place, int count) {
        return (call - 1) * count + place;
    }
}
