package dev.weft.plan;

import dev.weft.plan.Transfer.Initiator;
import java.util.ArrayList;
import java.util.List;

/**
 * Every rank puts to its neighbours: its own spans first, then what it received, nearest source
 * first. A span stays in the lane of the same index all the way round, so that what arrives first
 * is forwarded first.
 *
 * <p>With lanes in both directions each shard takes the shorter way. On an even number of ranks the
 * rank opposite to the owner is equally far either way: it gets the first half of the spans
 * clockwise and the other half counter-clockwise, the odd one clockwise. Two ranks are opposite to
 * each other.
 */
final class RingRouting implements Routing {

    private final Chunks chunks;
    private final int ranks;
    private final int clockwiseLanes;
    private final int counterLanes;

    private RingRouting(Chunks chunks, int clockwiseLanes, int counterLanes) {
        this.chunks = chunks;
        this.ranks = chunks.shards().ranks();
        this.clockwiseLanes = clockwiseLanes;
        this.counterLanes = counterLanes;
    }

    static RingRouting oneWay(Chunks chunks, int lanes) {
        return new RingRouting(chunks, lanes, 0);
    }

    /** Half of the lanes, and the odd one, are clockwise; they come first. */
    static RingRouting bothWays(Chunks chunks, int lanes) {
        return new RingRouting(chunks, lanes - lanes / 2, lanes / 2);
    }

    @Override
    public Initiator initiator() {
        return Initiator.SENDER;
    }

    @Override
    public List<Hop> lane(int rank, int lane) {
        boolean clockwise = isClockwise(lane);
        int width = clockwise ? clockwiseLanes : counterLanes;
        int turn = clockwise ? lane : lane - clockwiseLanes;
        int to = neighbour(rank, clockwise, 1);
        List<Hop> hops = new ArrayList<>();
        for (int distance = 1; distance <= reach(); distance++) {
            int source = neighbour(rank, !clockwise, distance - 1);
            int first = firstSpan(source, distance, clockwise);
            int end = endSpan(source, distance, clockwise);
            for (int span = first + Math.floorMod(turn - first, width); span < end; span += width) {
                hops.add(new Hop(rank, to, source, span));
            }
        }
        return hops;
    }

    @Override
    public List<Delivery> deliveries(int rank) {
        List<Delivery> deliveries = new ArrayList<>();
        for (int lane = 0; lane < clockwiseLanes + counterLanes; lane++) {
            List<Hop> hops = lane(neighbour(rank, !isClockwise(lane), 1), lane);
            if (!hops.isEmpty()) {
                deliveries.add(new Delivery(lane, 0, hops));
            }
        }
        return deliveries;
    }

    private boolean isClockwise(int lane) {
        return lane < clockwiseLanes;
    }

    private int neighbour(int rank, boolean clockwise, int distance) {
        return Math.floorMod(clockwise ? rank + distance : rank - distance, ranks);
    }

    /** How far from its owner a chunk travels in one direction. */
    private int reach() {
        return counterLanes == 0 ? ranks - 1 : ranks / 2;
    }

    /** First span of {@code source} that travels to the given distance in the given direction. */
    private int firstSpan(int source, int distance, boolean clockwise) {
        return isSplit(distance) && !clockwise ? half(source) : 0;
    }

    private int endSpan(int source, int distance, boolean clockwise) {
        return isSplit(distance) && clockwise ? half(source) : chunks.spans(source);
    }

    private boolean isSplit(int distance) {
        return counterLanes > 0 && 2 * distance == ranks;
    }

    private int half(int source) {
        return Math.ceilDiv(chunks.spans(source), 2);
    }
}
