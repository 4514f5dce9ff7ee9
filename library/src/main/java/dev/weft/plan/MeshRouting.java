package dev.weft.plan;

import dev.weft.plan.Chunks.RowBlock;
import java.util.ArrayList;
import java.util.List;

/**
 * Every shard goes straight from its owner to its {@link Hosts#gateway} on each other host, pushed
 * by the owner or pulled by the gateway. Each rank starts with the host after its own and continues
 * from there. So at any time the hosts that are busy with their d-th peer form a permutation, and
 * no host is addressed by two.
 *
 * <p>With at least one lane per peer host, every peer has the same number of lanes, each with a
 * contiguous range of segments or chunks. With fewer lanes, the peers are assigned to them in turn.
 *
 * <p>A mesh of ranks is one in which every rank has its own host. If its owners push with fewer
 * lanes than peers, {@link DealtMesh} is used instead.
 *
 * @param hosts two or more
 * @param lanes as given by {@link #lanes(int, int)}
 * @param byChunks whether lanes may share a segment, because nothing waits for single segments
 */
record MeshRouting(Chunks chunks, Hosts hosts, int lanes, boolean pulls, boolean byChunks)
        implements Routing {

    /** The number of lanes that can be used: a multiple of the peers, or fewer than the peers. */
    static int lanes(int hosts, int requested) {
        int peers = hosts - 1;
        return requested < peers ? requested : requested / peers * peers;
    }

    @Override
    public List<Hop> lane(int rank, int lane) {
        List<Hop> hops = new ArrayList<>();
        if (isShared()) {
            for (int distance = lane + 1; distance < hosts.count(); distance += lanes) {
                addHops(hops, rank, distance, 0);
            }
        } else {
            addHops(hops, rank, lane / lanesPerPeer() + 1, lane % lanesPerPeer());
        }
        return hops;
    }

    @Override
    public List<Delivery> deliveries(int rank) {
        return pulls ? pulledBy(rank) : pushedTo(rank);
    }

    /** Nothing is multiplied in the order of chunks: everything is gathered first. */
    @Override
    public List<RowBlock> consumption(Chunks cut, int rank, List<Delivery> deliveries) {
        return byChunks
                ? ConsumptionOrder.natural(cut)
                : Routing.super.consumption(cut, rank, deliveries);
    }

    private List<Delivery> pulledBy(int rank) {
        List<Delivery> deliveries = new ArrayList<>();
        for (int lane = 0; lane < lanes; lane++) {
            addDelivery(deliveries, lane, 0, lane(rank, lane));
        }
        return deliveries;
    }

    private List<Delivery> pushedTo(int rank) {
        List<Delivery> deliveries = new ArrayList<>();
        for (int distance = 1; distance < hosts.count(); distance++) {
            for (int owner : hosts.sources(rank, peer(rank, -distance))) {
                addPushed(deliveries, owner, rank, distance - 1);
            }
        }
        return deliveries;
    }

    private void addPushed(List<Delivery> deliveries, int owner, int rank, int peer) {
        for (int share = 0; share < lanesPerPeer(); share++) {
            List<Hop> hops = new ArrayList<>();
            addSegments(hops, owner, rank, share);
            int lane = isShared() ? peer % lanes : peer * lanesPerPeer() + share;
            long turnsBefore = isShared() ? peer / lanes : 0;
            addDelivery(deliveries, lane, turnsBefore * chunks.shards().rows(owner), hops);
        }
    }

    private static void addDelivery(
            List<Delivery> deliveries, int lane, long rowsBefore, List<Hop> hops) {
        if (!hops.isEmpty()) {
            deliveries.add(new Delivery(lane, rowsBefore, hops));
        }
    }

    /** Adds one lane's share of what {@code rank} exchanges with the host at {@code distance}. */
    private void addHops(List<Hop> hops, int rank, int distance, int share) {
        int peer = peer(rank, distance);
        if (pulls) {
            for (int owner : hosts.sources(rank, peer)) {
                addSegments(hops, owner, rank, share);
            }
        } else {
            addSegments(hops, rank, hosts.gateway(rank, peer), share);
        }
    }

    private void addSegments(List<Hop> hops, int owner, int to, int share) {
        int end = firstOfShare(owner, share + 1);
        for (int i = firstOfShare(owner, share); i < end; i++) {
            hops.add(
                    byChunks
                            ? Hop.ofChunk(owner, to, i, pulls)
                            : Hop.ofSegment(owner, to, owner, i, pulls));
        }
    }

    private int firstOfShare(int source, int share) {
        int count = byChunks ? chunks.count(source) : chunks.segments(source);
        return Math.toIntExact((long) count * share / lanesPerPeer());
    }

    /** The host {@code distance} hosts after that of {@code rank}. */
    private int peer(int rank, int distance) {
        return Math.floorMod(hosts.hostOf(rank) + distance, hosts.count());
    }

    private boolean isShared() {
        return lanes < hosts.count() - 1;
    }

    private int lanesPerPeer() {
        return Math.max(1, lanes / (hosts.count() - 1));
    }
}
