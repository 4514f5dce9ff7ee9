package dev.weft.plan;

import dev.weft.plan.Chunks.RowBlock;
import java.util.ArrayList;
import java.util.List;

/**
 * A mesh in which owners push with fewer lanes than they have peers. All chunks for the next rank,
 * then all for the one after it, and so on, are assigned to the lanes in turn. So all lanes serve
 * the same peer, and at any time the ranks that are busy with their d-th peer form a permutation. A
 * row block of several chunks may arrive by several lanes.
 */
record DealtMesh(Chunks chunks, int lanes) implements Routing {

    @Override
    public boolean pulls() {
        return false;
    }

    @Override
    public List<Hop> lane(int rank, int lane) {
        List<Hop> hops = new ArrayList<>();
        for (int distance = 1; distance < ranks(); distance++) {
            addHops(hops, rank, distance, lane);
        }
        return hops;
    }

    @Override
    public List<Delivery> deliveries(int rank) {
        List<Delivery> deliveries = new ArrayList<>();
        for (int distance = 1; distance < ranks(); distance++) {
            for (int lane = 0; lane < lanes; lane++) {
                List<Hop> hops = new ArrayList<>();
                addHops(hops, owner(rank, distance), distance, lane);
                if (!hops.isEmpty()) {
                    deliveries.add(new Delivery(lane, 0, hops));
                }
            }
        }
        return deliveries;
    }

    /** In the order in which the owners send the last chunks of blocks, all at the same pace. */
    @Override
    public List<RowBlock> consumption(Chunks cut, int rank, List<Delivery> deliveries) {
        return ConsumptionOrder.byDue(
                chunks,
                rank,
                block -> {
                    int distance = Math.floorMod(rank - block.source(), ranks());
                    return turn(block.source(), distance, block.firstChunk())
                            + block.chunkCount()
                            - 1;
                });
    }

    /** Adds what one lane carries from {@code owner} to its peer at {@code distance}. */
    private void addHops(List<Hop> hops, int owner, int distance, int lane) {
        int to = (owner + distance) % ranks();
        int first = (int) Math.floorMod(lane - turn(owner, distance, 0), (long) lanes);
        for (int chunk = first; chunk < chunks.count(owner); chunk += lanes) {
            hops.add(Hop.ofChunk(owner, to, chunk, false));
        }
    }

    /** How many chunks {@code owner} has assigned before this one. */
    private long turn(int owner, int distance, int chunk) {
        return (distance - 1L) * chunks.count(owner) + chunk;
    }

    private int owner(int rank, int distance) {
        return Math.floorMod(rank - distance, ranks());
    }

    private int ranks() {
        return chunks.shards().ranks();
    }
}
