package dev.weft.plan;

import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Between hosts over the network, within a host through its memory. Another routing brings every
 * shard once to one rank of each host. What a rank holds, its own segments and after them those
 * that reach it over the network, it hands to its host mates in the order in which they are due; or
 * they get it there, where the network's routing is one of gets.
 *
 * <p>Network and memory have lanes of their own, network first: copies between mates never queue
 * behind a slower network, and the network never waits for a mate. The network's lanes wait for
 * other hosts alone, so what they bring never waits for a memory lane. A memory lane serves some of
 * the mates, starting with the one that follows; with more lanes than mates every mate has the same
 * number, and the segments are dealt to them in turn. Lanes are left idle where a host is too
 * small.
 *
 * <p>When a segment is due is told in rows: its last row within the shard if it starts on this
 * host; otherwise all rows of the group, plus those that its network lane has carried by then. So
 * network rows come after those of mates, and what a mate forwards is due as soon as that mate has
 * it: memory is taken to be faster than a network by so much that its copies cost nothing.
 *
 * @param network which uses {@code networkLanes}; there is one lane of each kind at least
 */
record HostRouting(Chunks chunks, Hosts hosts, Routing network, int networkLanes, int memoryLanes)
        implements Routing {

    private static final Comparator<Held> BY_DUE = Comparator.comparingLong(Held::due);

    @Override
    public Initiator initiator() {
        return network.initiator();
    }

    @Override
    public List<Hop> lane(int rank, int lane) {
        if (lane < networkLanes) {
            return network.lane(rank, lane);
        }
        return initiator() == Initiator.SENDER
                ? pushed(rank, lane - networkLanes)
                : pulled(rank, lane - networkLanes);
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
            if (initiator() == Initiator.SENDER) {
                for (int distance = 1; distance <= mates(rank); distance++) {
                    List<Held> puts = handed(rank, distance, lane);
                    addDelivery(deliveries, lane, puts.stream().map(h -> hop(h, rank)).toList());
                }
            } else {
                addDelivery(deliveries, lane, pulled(rank, lane));
            }
        }
        return deliveries;
    }

    private void addDelivery(List<Delivery> deliveries, int lane, List<Hop> hops) {
        if (!hops.isEmpty()) {
            deliveries.add(new Delivery(networkLanes + lane, 0, hops));
        }
    }

    /** As due; of what is due at once, the nearest first, as in the lanes that gather it. */
    @Override
    public List<RowBlock> consumption(Chunks cut, int rank, List<Delivery> deliveries) {
        List<Held> arrivals = new ArrayList<>(overNetwork(rank));
        for (int distance = 1; distance <= mates(rank); distance++) {
            arrivals.addAll(held(holder(rank, distance)));
        }
        arrivals.sort(BY_DUE);
        return ConsumptionOrder.bySegments(chunks, rank, arrivals);
    }

    /** What one lane brings to {@code rank} from the mate at {@code distance}, as due. */
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

    /** All that {@code rank} hands to every mate, as due. */
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

    private static Hop hop(Held held, int to) {
        return new Hop(held.holder(), to, held.source(), held.segment());
    }

    /** Whether the mate at {@code distance} is among those that a memory lane is for. */
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

    /** The mate at {@code distance} from which {@code rank} gets what that one holds. */
    private int holder(int rank, int distance) {
        return mate(rank, initiator() == Initiator.SENDER ? -distance : distance);
    }

    private int mate(int rank, int distance) {
        int host = hosts.hostOf(rank);
        int first = hosts.first(host);
        return first + Math.floorMod(rank - first + distance, hosts.size(host));
    }
}
