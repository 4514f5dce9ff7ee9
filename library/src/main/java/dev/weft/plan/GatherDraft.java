package dev.weft.plan;

import dev.weft.plan.Chunks.RowBlock;
import dev.weft.plan.Routing.Delivery;
import dev.weft.plan.Routing.Hop;
import java.util.ArrayList;
import java.util.List;

/**
 * One rank's part of a gather, before it is written as steps.
 *
 * @param lanes what each lane of the rank carries, in order
 * @param deliveries what lanes, its own or its peers', bring to the rank; none is empty
 * @param order the order in which it multiplies row blocks
 */
record GatherDraft(List<List<Hop>> lanes, List<Delivery> deliveries, List<RowBlock> order) {

    /** A rank to which nothing comes. */
    static GatherDraft without(List<RowBlock> order) {
        return new GatherDraft(List.of(), List.of(), order);
    }

    /** What a routing means for one rank. */
    static GatherDraft of(Chunks chunks, Routing routing, int rank, int laneCount) {
        List<List<Hop>> lanes = new ArrayList<>(laneCount);
        for (int lane = 0; lane < laneCount; lane++) {
            lanes.add(routing.lane(rank, lane));
        }
        List<Delivery> deliveries = routing.deliveries(rank);
        return new GatherDraft(lanes, deliveries, routing.consumption(chunks, rank, deliveries));
    }

    /**
     * The same for a rank with several programs: each lane becomes one for each of them, which
     * carries the chunks of that program's rows.
     */
    GatherDraft split(GatherRequest request) {
        int programs = request.programs();
        if (programs == 1) {
            return this;
        }
        List<List<Hop>> split = new ArrayList<>();
        for (List<Hop> lane : lanes) {
            for (int program = 0; program < programs; program++) {
                split.add(ofProgram(request, lane, program));
            }
        }
        List<Delivery> brought = new ArrayList<>();
        for (Delivery delivery : deliveries) {
            for (int program = 0; program < programs; program++) {
                List<Hop> hops = ofProgram(request, delivery.hops(), program);
                if (!hops.isEmpty()) {
                    brought.add(new Delivery(delivery.lane() * programs + program, 0, hops));
                }
            }
        }
        return new GatherDraft(split, brought, order);
    }

    private static List<Hop> ofProgram(GatherRequest request, List<Hop> hops, int program) {
        Chunks chunks = request.chunks();
        List<Hop> own = new ArrayList<>();
        for (Hop hop : hops) {
            for (int chunk = hop.firstChunk(chunks); chunk < hop.endChunk(chunks); chunk++) {
                long row = chunks.chunk(hop.source(), chunk).firstRow();
                if (program(request, hop.source(), row) == program) {
                    own.add(hop.ofOne(chunk));
                }
            }
        }
        return own;
    }

    /** The program that has a row of a shard. */
    static int program(GatherRequest request, int source, long row) {
        long rows = request.chunks().shards().rows(source) / request.programs();
        return (int) Math.min(request.programs() - 1, row / Math.max(1, rows));
    }
}
