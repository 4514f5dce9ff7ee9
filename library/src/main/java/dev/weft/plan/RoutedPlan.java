package dev.weft.plan;

import static java.util.Comparator.comparingInt;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Writes a routing as one rank's plan, both ends of a transfer from the same hop. Pure. */
record RoutedPlan(String name, Storage storage, Chunks chunks, Routing routing, Pacing pacing) {

    RankPlan write(int rank, int laneCount) {
        List<Lane> lanes = new ArrayList<>(laneCount);
        for (int lane = 0; lane < laneCount; lane++) {
            lanes.add(lane(lane, routing.lane(rank, lane)));
        }
        List<Delivery> deliveries = routing.deliveries(rank);
        List<Lane> arrivals = new ArrayList<>(deliveries.size());
        for (Delivery delivery : deliveries) {
            arrivals.add(lane(delivery.lane(), delivery.hops()));
        }
        int ranks = chunks.shards().ranks();
        List<RowBlock> consumption =
                pacing.gatherFirst()
                        ? ConsumptionOrder.natural(chunks)
                        : routing.consumption(chunks, rank, deliveries);
        if (storage == Storage.PING_PONG) {
            // A lane with fewer rows may be a step ahead of another. A block of its next step must
            // not hold back blocks in the buffer that this step waits for.
            consumption =
                    consumption.stream()
                            .sorted(comparingInt(b -> Math.floorMod(rank - b.source(), ranks)))
                            .toList();
        }
        return new RankPlan(
                name,
                storage,
                rank,
                chunks,
                lanes,
                arrivals,
                consumption,
                releases(storage, rank, ranks),
                pacing);
    }

    /** Shards arrive round the ring: the predecessor's first. */
    static List<Integer> releases(Storage storage, int rank, int ranks) {
        return storage == Storage.PING_PONG
                ? IntStream.range(1, ranks)
                        .mapToObj(step -> Math.floorMod(rank - step, ranks))
                        .toList()
                : List.of();
    }

    private Lane lane(int index, List<Hop> hops) {
        List<Transfer> transfers = new ArrayList<>();
        for (Hop hop : hops) {
            for (int chunk = hop.firstChunk(chunks); chunk < hop.endChunk(chunks); chunk++) {
                transfers.add(transfer(hop, chunk));
            }
        }
        return new Lane(index, transfers);
    }

    private Transfer transfer(Hop hop, int chunk) {
        boolean hasOwnPlace = storage != Storage.PING_PONG;
        int step = Math.floorMod(hop.to() - hop.source(), chunks.shards().ranks());
        return new Transfer(
                hop.from(),
                hop.to(),
                hop.source(),
                chunk,
                chunks.tag(hop.source(), chunk),
                routing.initiator(),
                hasOwnPlace ? hop.source() : step % 2,
                hasOwnPlace ? 0 : Math.max(0, step - 2));
    }
}
