package dev.weft.plan;

import dev.weft.plan.Transfer.Initiator;
import java.util.ArrayList;
import java.util.List;

/**
 * Every shard goes straight from its owner to each peer, pushed by the owner or pulled by the
 * reader. Each rank starts with its successor and goes on from there, so that at any time the ranks
 * that are busy with their d-th peer form a permutation and no rank is addressed by two.
 *
 * <p>With at least one lane per peer, every peer has the same number of lanes, each of them a
 * contiguous range of spans. With fewer lanes the peers are dealt to them in turn.
 */
final class MeshRouting implements Routing {

    private final Chunks chunks;
    private final int ranks;
    private final int lanes;
    private final Initiator initiator;

    /** Requires two ranks or more; {@code lanes} as {@link #lanes} gives it. */
    MeshRouting(Chunks chunks, int lanes, Initiator initiator) {
        this.chunks = chunks;
        this.ranks = chunks.shards().ranks();
        this.lanes = lanes;
        this.initiator = initiator;
    }

    /** The lanes of which use can be made: a multiple of the peers, or fewer than those. */
    static int lanes(int ranks, int requested) {
        int peers = ranks - 1;
        return requested < peers ? requested : requested / peers * peers;
    }

    @Override
    public Initiator initiator() {
        return initiator;
    }

    @Override
    public List<Hop> lane(int rank, int lane) {
        List<Hop> hops = new ArrayList<>();
        if (isShared()) {
            for (int distance = lane + 1; distance < ranks; distance += lanes) {
                addHops(hops, rank, distance, 0);
            }
        } else {
            addHops(hops, rank, lane / lanesPerPeer() + 1, lane % lanesPerPeer());
        }
        return hops;
    }

    @Override
    public List<Delivery> deliveries(int rank) {
        return initiator == Initiator.SENDER ? pushedTo(rank) : pulledBy(rank);
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
        for (int distance = 1; distance < ranks; distance++) {
            int owner = Math.floorMod(rank - distance, ranks);
            int peer = distance - 1;
            for (int part = 0; part < lanesPerPeer(); part++) {
                List<Hop> hops = new ArrayList<>();
                addHops(hops, owner, distance, part);
                int lane = isShared() ? peer % lanes : peer * lanesPerPeer() + part;
                long turnsBefore = isShared() ? peer / lanes : 0;
                addDelivery(deliveries, lane, turnsBefore * chunks.shards().rows(owner), hops);
            }
        }
        return deliveries;
    }

    private static void addDelivery(
            List<Delivery> deliveries, int lane, long rowsBefore, List<Hop> hops) {
        if (!hops.isEmpty()) {
            deliveries.add(new Delivery(lane, rowsBefore, hops));
        }
    }

    /** Adds one lane's part of what {@code rank} exchanges with the peer at {@code distance}. */
    private void addHops(List<Hop> hops, int rank, int distance, int part) {
        int peer = (rank + distance) % ranks;
        int from = initiator == Initiator.SENDER ? rank : peer;
        int to = initiator == Initiator.SENDER ? peer : rank;
        int end = firstSpanOfPart(from, part + 1);
        for (int span = firstSpanOfPart(from, part); span < end; span++) {
            hops.add(new Hop(from, to, from, span));
        }
    }

    private int firstSpanOfPart(int source, int part) {
        return Math.toIntExact((long) chunks.spans(source) * part / lanesPerPeer());
    }

    private boolean isShared() {
        return lanes < ranks - 1;
    }

    private int lanesPerPeer() {
        return Math.max(1, lanes / (ranks - 1));
    }
}
