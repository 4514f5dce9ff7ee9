package dev.weft.plan;

import static java.util.Comparator.comparingLong;

import java.util.ArrayList;
import java.util.List;

/**
 * A ring of hosts. Every shard travels from host to host, from its {@link Hosts#gateway} on one to
 * its gateway on the next: a rank puts its own segments first, then what it received, nearest host
 * first. If hosts differ in size, a gateway may have several shards of one host; they arrive side
 * by side, so it forwards them by rows and not shard after shard. A segment stays in the lane of
 * the same index all the way round, so that what arrives first is forwarded first.
 *
 * <p>With lanes in both directions, each shard takes the shorter way. With an even number of hosts,
 * the one opposite the owner's is equally far either way: it gets the first half of the segments
 * clockwise and the other half counter-clockwise, the odd one clockwise. Two hosts are opposite
 * each other.
 *
 * <p>A ring of ranks is one in which every rank has its own host.
 */
record RingRouting(Chunks chunks, Hosts hosts, int clockwiseLanes, int counterLanes)
        implements Routing {

    private static final int ANYONE = -1;

    /** Requires two hosts or more. */
    static RingRouting oneWay(Chunks chunks, Hosts hosts, int lanes) {
        return new RingRouting(chunks, hosts, lanes, 0);
    }

    /** Half of the lanes, rounded up, are clockwise; they come first. */
    static RingRouting bothWays(Chunks chunks, Hosts hosts, int lanes) {
        return new RingRouting(chunks, hosts, lanes - lanes / 2, lanes / 2);
    }

    @Override
    public boolean pulls() {
        return false;
    }

    @Override
    public List<Hop> lane(int rank, int lane) {
        return hops(rank, lane, ANYONE);
    }

    @Override
    public List<Delivery> deliveries(int rank) {
        List<Delivery> deliveries = new ArrayList<>();
        for (int lane = 0; lane < clockwiseLanes + counterLanes; lane++) {
            int before = neighbour(hosts.hostOf(rank), !isClockwise(lane), 1);
            for (int i = 0; i < hosts.size(before); i++) {
                int from = hosts.first(before) + i;
                List<Hop> hops = hops(from, lane, rank);
                if (!hops.isEmpty()) {
                    deliveries.add(new Delivery(lane, rowsBefore(from, lane, rank), hops));
                }
            }
        }
        return deliveries;
    }

    /** A lane's part of the sender's own shard goes first, though its gateway may be another. */
    private long rowsBefore(int from, int lane, int to) {
        boolean isOwnFirst = hosts.gateway(from, hosts.hostOf(to)) == to;
        return isOwnFirst ? 0 : chunks.shards().rows(from) / width(lane);
    }

    /** What a lane carries to {@code receiver}, or to anyone. */
    private List<Hop> hops(int rank, int lane, int receiver) {
        boolean clockwise = isClockwise(lane);
        int host = hosts.hostOf(rank);
        int next = neighbour(host, clockwise, 1);
        List<Hop> hops = new ArrayList<>();
        for (int distance = 1; distance <= reach(); distance++) {
            int sourceHost = neighbour(host, !clockwise, distance - 1);
            int start = hops.size();
            int shards = 0;
            for (int source : hosts.sources(rank, sourceHost)) {
                int to = hosts.gateway(source, next);
                if (receiver == ANYONE || receiver == to) {
                    addSegments(hops, rank, to, source, distance, lane);
                    shards++;
                }
            }
            if (shards > 1) {
                hops.subList(start, hops.size())
                        .sort(comparingLong(hop -> chunks.endRow(hop.source(), hop.segment())));
            }
        }
        return hops;
    }

    private void addSegments(List<Hop> hops, int from, int to, int source, int distance, int lane) {
        boolean clockwise = isClockwise(lane);
        int width = width(lane);
        int turn = clockwise ? lane : lane - clockwiseLanes;
        int first = firstSegment(source, distance, clockwise);
        int end = endSegment(source, distance, clockwise);
        for (int segment = first + Math.floorMod(turn - first, width);
                segment < end;
                segment += width) {
            hops.add(Hop.ofSegment(from, to, source, segment, false));
        }
    }

    private boolean isClockwise(int lane) {
        return lane < clockwiseLanes;
    }

    /** Lanes in the same direction. */
    private int width(int lane) {
        return isClockwise(lane) ? clockwiseLanes : counterLanes;
    }

    private int neighbour(int host, boolean clockwise, int distance) {
        return Math.floorMod(clockwise ? host + distance : host - distance, hosts.count());
    }

    /** How many hosts a chunk passes in one direction. */
    private int reach() {
        return counterLanes == 0 ? hosts.count() - 1 : hosts.count() / 2;
    }

    /** The first segment of {@code source} that travels this far in that direction. */
    private int firstSegment(int source, int distance, boolean clockwise) {
        return isSplit(distance) && !clockwise ? half(source) : 0;
    }

    private int endSegment(int source, int distance, boolean clockwise) {
        return isSplit(distance) && clockwise ? half(source) : chunks.segments(source);
    }

    private boolean isSplit(int distance) {
        return counterLanes > 0 && 2 * distance == hosts.count();
    }

    private int half(int source) {
        return Math.ceilDiv(chunks.segments(source), 2);
    }
}
