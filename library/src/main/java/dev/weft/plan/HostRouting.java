package dev.weft.plan;

import dev.weft.plan.Chunks.RowBlock;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Routes between hosts over the network, and within a host through its memory. Another routing
 * brings every shard once to one rank of each host. A rank holds its own segments and those that
 * reach it over the network. It passes them to the other ranks of its host, its mates, in the order
 * in which they are due; if the network's routing is one of gets, the mates get them instead.
 *
 * <p>Network and memory have separate lanes, network first: copies between mates never queue behind
 * a slower network, and the network never waits for a mate. The network's lanes wait only for other
 * hosts, so what they bring never waits for a memory lane. A memory lane serves some of the mates,
 * starting with the next one; with more lanes than mates, every mate has the same number of lanes,
 * and the segments are assigned to them in turn. Lanes stay idle if a host is too small.
 *
 * <p>A segment's due time is counted in rows: its last row within the shard if it starts on this
 * host; otherwise all rows of the group, plus those that its network lane has carried by then. So
 * network rows come after those of mates, and what a mate forwards is due as soon as that mate has
 * it: memory is assumed to be so much faster than a network that its copies cost nothing.
 *
 * @param network uses {@code networkLanes}; there is at least one lane of each kind
 */
record HostRouting(Chunks chunks, Hosts hosts, Routing network, int networkLanes, int memoryLanes)
        implements Routing {

    private static final Comparator<Held> BY_DUE = Comparator.comparingLong(Held::due);

    @Override
    public boolean pulls() {
        return network.pulls();
    }

    @Override
    public List<Hop> lane(int rank, int lane) {
        if (lane < networkLanes) {
            return network.lane(rank, lane);
        }
        return pulls() ? pulled(rank, lane - networkLanes) : pushed(rank, lane - networkLanes);
    }

    private List<Hop> pushed(int rank, int lane) {
        List<Hop> hops = new ArrayList<>();
        List<Held> held = held(rank);
        for (int turn = 0; turn < held.size(); turn++) {
            for (int distance = 1; distance <= mates(rank); distance++) {
                if (carries(lane, rank, distance, turn)) {
                    hops.add(hop(held.get(turn), mate(rank, distance)));
                }
            }
        }
        return hops;
    }

    private List<Hop> pulled(int rank, int lane) {
        List<Held> gets = new ArrayList<>();
        for (int distance = 1; distance <= mates(rank); distance++) {
            gets.addAll(handed(rank, distance, lane));
        }
        gets.sort(BY_DUE);
        return gets.stream().map(held -> hop(held, rank)).toList();
    }

    @Override
    public List<Delivery> deliveries(int rank) {
        List<Delivery> deliveries = new ArrayList<>(network.deliveries(rank));
        for (int lane = 0; lane < memoryLanes; lane++) {
            if (pulls()) {
                addDelivery(deliveries, lane, pulled(rank, lane));
            } else {
                for (int distance = 1; distance <= mates(rank); distance++) {
                    List<Held> puts = handed(rank, distance, lane);
                    addDelivery(deliveries, lane, puts.stream().map(h -> hop(h, rank)).toList());
                }
            }
        }
        return deliveries;
    }

    private void addDelivery(List<Delivery> deliveries, int lane, List<Hop> hops) {
        if (!hops.isEmpty()) {
            deliveries.add(new Delivery(networkLanes + lane, 0, hops));
        }
    }

    /** In due order; if due at once, the nearest first, as in the lanes that gather it. */
    @Override
    public List<RowBlock> consumption(Chunks cut, int rank, List<Delivery> deliveries) {
        List<Held> arrivals = new ArrayList<>(overNetwork(rank));
        for (int distance = 1; distance <= mates(rank); distance++) {
            arrivals.addAll(held(holder(rank, distance)));
        }
        arrivals.sort(BY_DUE);
        return ConsumptionOrder.bySegments(chunks, rank, arrivals);
    }

    /** What one lane brings to {@code rank} from the mate at {@code distance}, in due order. */
    private List<Held> handed(int rank, int distance, int lane) {
        List<Held> handed = new ArrayList<>();
        if (serves(lane, rank, distance)) {
            List<Held> held = held(holder(rank, distance));
            for (int turn = 0; turn < held.size(); turn++) {
                if (carries(lane, rank, distance, turn)) {
                    handed.add(held.get(turn));
                }
            }
        }
        return handed;
    }

    /** Everything that {@code rank} passes to every mate, in due order. */
    private List<Held> held(int rank) {
        List<Held> held = new ArrayList<>();
        for (int segment = 0; segment < chunks.segments(rank); segment++) {
            held.add(new Held(rank, rank, segment, chunks.endRow(rank, segment)));
        }
        held.addAll(overNetwork(rank));
        return held;
    }

    private List<Held> overNetwork(int rank) {
        List<Held> held = new ArrayList<>();
        for (Delivery delivery : network.deliveries(rank)) {
            long due = chunks.shards().totalRows() + delivery.rowsBefore();
            for (Hop hop : delivery.hops()) {
                long firstRow = hop.segment() * chunks.segmentRows(hop.source());
                due += chunks.endRow(hop.source(), hop.segment()) - firstRow;
                held.add(new Held(rank, hop.source(), hop.segment(), due));
            }
        }
        held.sort(BY_DUE);
        return held;
    }

    private Hop hop(Held held, int to) {
        return Hop.ofSegment(held.holder(), to, held.source(), held.segment(), pulls());
    }

    /** Whether a memory lane serves the mate at {@code distance}. */
    private boolean serves(int lane, int rank, int distance) {
        int mates = mates(rank);
        if (memoryLanes <= mates) {
            return (distance - 1) % memoryLanes == lane;
        }
        return lane / (memoryLanes / mates) == distance - 1;
    }

    private boolean carries(int lane, int rank, int distance, int turn) {
        int lanesPerMate = Math.max(1, memoryLanes / mates(rank));
        return serves(lane, rank, distance) && turn % lanesPerMate == lane % lanesPerMate;
    }

    private int mates(int rank) {
        return hosts.size(hosts.hostOf(rank)) - 1;
    }

    /** The mate at {@code distance}, whose segments {@code rank} gets. */
    private int holder(int rank, int distance) {
        return mate(rank, pulls() ? distance : -distance);
    }

    private int mate(int rank, int distance) {
        int host = hosts.hostOf(rank);
        int first = hosts.first(host);
        return first + Math.floorMod(rank - first + distance, hosts.size(host));
    }

    /**
     * A segment that a rank owns or gets over the network, and passes to the other ranks of its
     * host.
     *
     * @param due when it is available, in rows: see the class
     */
    record Held(int holder, int source, int segment, long due) {}
}
