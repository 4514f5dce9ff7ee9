package dev.weft.plan;

import dev.weft.plan.Chunks.RowBlock;
import dev.weft.plan.GatherSteps.Storage;
import dev.weft.plan.Routing.Delivery;
import dev.weft.plan.Routing.Hop;
import dev.weft.plan.step.StepPlan;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;

/**
 * Writes the plans of a gather from a list of transfers. Lanes are filled in the order of the
 * calls; what ranks wait for and the order in which they multiply follow from that. Used by one
 * thread.
 *
 * {@snippet :
 * // Every rank sends its shard to every other: a mesh in ten lines.
 * List<StepPlan> mesh(GatherRequest request) {
 *     PlanBuilder builder = new PlanBuilder("my-mesh", request, 1);
 *     int ranks = request.ranks();
 *     for (int rank = 0; rank < ranks; rank++) {
 *         for (int distance = 1; distance < ranks; distance++) {
 *             builder.put(rank, 0, (rank + distance) % ranks, rank);
 *         }
 *     }
 *     return builder.build();
 * }
 * }
 */
public final class PlanBuilder {

    /** Every lane is a worker of its rank. */
    private static final int MOST_LANES = 1 << 16;

    private final String name;
    private final GatherRequest request;
    private final Chunks chunks;
    private final int ranks;
    private final int laneCount;

    /** By rank and lane. */
    private final List<List<List<Hop>>> lanes = new ArrayList<>();

    private boolean gatherFirst;
    private long leastRows;

    /** Starts plans with this name and this many lanes on every rank; lanes may stay empty. */
    public PlanBuilder(String name, GatherRequest request, int laneCount) {
        this.name = name;
        this.request = request;
        this.chunks = request.chunks();
        this.ranks = request.ranks();
        if (laneCount < 0 || laneCount > MOST_LANES) {
            throw new PlanException(
                    name, "%s lanes on every rank: expected 0 to %s", laneCount, MOST_LANES);
        }
        this.laneCount = laneCount;
        for (int rank = 0; rank < ranks; rank++) {
            List<List<Hop>> own = new ArrayList<>();
            for (int lane = 0; lane < laneCount; lane++) {
                own.add(new ArrayList<>());
            }
            lanes.add(own);
        }
    }

    /** Nothing is multiplied before everything has arrived. */
    public PlanBuilder gatherFirst() {
        this.gatherFirst = true;
        return this;
    }

    /**
     * Parts of a block, of at least {@code rows} rows, are multiplied while the rest arrives; by
     * default a block is multiplied as a whole.
     */
    public PlanBuilder leastRows(long rows) {
        if (rows < 0) {
            throw new PlanException(name, "steps of %s rows: expected none or more", rows);
        }
        this.leastRows = rows;
        return this;
    }

    /** Lane {@code lane} of {@code from} writes all chunks of {@code source} to {@code to}. */
    public PlanBuilder put(int from, int lane, int to, int source) {
        check("source", source, ranks);
        for (int chunk = 0; chunk < chunks.count(source); chunk++) {
            put(from, lane, to, source, chunk);
        }
        return this;
    }

    /** Lane {@code lane} of {@code from} writes one chunk of {@code source} to {@code to}. */
    public PlanBuilder put(int from, int lane, int to, int source, int chunk) {
        add(lane, new Hop(from, to, source, -1, chunk, false));
        return this;
    }

    /** Lane {@code lane} of {@code to} reads all chunks of {@code source} from {@code from}. */
    public PlanBuilder get(int to, int lane, int from, int source) {
        check("source", source, ranks);
        for (int chunk = 0; chunk < chunks.count(source); chunk++) {
            get(to, lane, from, source, chunk);
        }
        return this;
    }

    /** Lane {@code lane} of {@code to} reads one chunk of {@code source} from {@code from}. */
    public PlanBuilder get(int to, int lane, int from, int source, int chunk) {
        add(lane, new Hop(from, to, source, -1, chunk, true));
        if (from != source && !request.hosts().shareMemory(from, to)) {
            throw new PlanException(
                    name,
                    "rank %s gets rows of rank %s from rank %s on another host: expected a put, since only a sender there sees that they have come",
                    to,
                    source,
                    from);
        }
        return this;
    }

    private void add(int lane, Hop hop) {
        check("rank", hop.from(), ranks);
        check("rank", hop.to(), ranks);
        check("source", hop.source(), ranks);
        check("chunk", hop.chunk(), chunks.count(hop.source()));
        check("lane", lane, laneCount);
        lanes.get(hop.initiator()).get(lane).add(hop);
    }

    private void check(String what, int value, int end) {
        if (value < 0 || value >= end) {
            throw new PlanException(
                    name, "a transfer with %s %s: expected 0 to %s", what, value, end - 1);
        }
    }

    /**
     * The plans of all ranks.
     *
     * @throws PlanException if a rank does not get every chunk of the others exactly once
     */
    public List<StepPlan> build() {
        long[] arrivals = arrivalRows();
        List<GatherDraft> drafts = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            drafts.add(new GatherDraft(lanes.get(rank), deliveries(rank), order(rank, arrivals)));
        }
        return GatherSteps.write(
                request,
                GatherSteps.Form.of(request, Storage.GATHERED, gatherFirst, laneCount, leastRows),
                drafts::get);
    }

    private List<Delivery> deliveries(int rank) {
        List<Delivery> deliveries = new ArrayList<>();
        for (List<List<Hop>> own : lanes) {
            for (int lane = 0; lane < own.size(); lane++) {
                List<Hop> here = own.get(lane).stream().filter(hop -> hop.to() == rank).toList();
                if (!here.isEmpty()) {
                    deliveries.add(new Delivery(lane, 0, here));
                }
            }
        }
        return deliveries;
    }

    /** By rank and tag: when a chunk arrives if all lanes are equally fast. */
    private long[] arrivalRows() {
        long[] arrives = new long[Math.multiplyExact(ranks, chunks.total())];
        Arrays.fill(arrives, Long.MAX_VALUE);
        for (int rank = 0; rank < ranks; rank++) {
            int first = rank * chunks.total();
            int end = first + chunks.tag(rank, chunks.count(rank));
            Arrays.fill(arrives, first + chunks.tag(rank, 0), end, 0);
        }
        Deque<LaneClock> waiting = new ArrayDeque<>();
        lanes.forEach(own -> own.forEach(lane -> waiting.add(new LaneClock(lane))));
        for (int idle = 0; idle < waiting.size(); idle++) {
            LaneClock lane = waiting.remove();
            idle = lane.advance(arrives) ? -1 : idle;
            waiting.add(lane);
        }
        checkComplete(arrives);
        return arrives;
    }

    private void checkComplete(long[] arrives) {
        for (int rank = 0; rank < ranks; rank++) {
            for (int source = 0; source < ranks; source++) {
                for (int chunk = 0; chunk < chunks.count(source); chunk++) {
                    if (arrives[rank * chunks.total() + chunks.tag(source, chunk)]
                            == Long.MAX_VALUE) {
                        throw new PlanException(
                                name,
                                "chunk %s of rank %s never gets to rank %s",
                                chunk,
                                source,
                                rank);
                    }
                }
            }
        }
    }

    /** How far one lane has come, in transfers and in time. */
    private final class LaneClock {
        private final List<Hop> hops;
        private int done;
        private long now;

        LaneClock(List<Hop> hops) {
            this.hops = hops;
        }

        /** Moves whatever is ready; returns whether anything was. */
        boolean advance(long[] arrives) {
            int before = done;
            for (; done < hops.size(); done++) {
                Hop next = hops.get(done);
                int tag = chunks.tag(next.source(), next.chunk());
                long there = arrives[next.from() * chunks.total() + tag];
                if (there == Long.MAX_VALUE) {
                    break;
                }
                int to = next.to() * chunks.total() + tag;
                if (arrives[to] != Long.MAX_VALUE) {
                    throw new PlanException(
                            name,
                            "rank %s gets chunk %s of rank %s, which it has already",
                            next.to(),
                            next.chunk(),
                            next.source());
                }
                now = Math.max(now, there) + chunks.chunk(next.source(), next.chunk()).rows();
                arrives[to] = now;
            }
            return done > before;
        }
    }

    private List<RowBlock> order(int rank, long[] arrives) {
        List<RowBlock> order = new ArrayList<>(ConsumptionOrder.rotated(chunks, rank));
        order.sort(
                Comparator.comparing((RowBlock block) -> block.source() != rank)
                        .thenComparingLong(block -> complete(rank, block, arrives)));
        return order;
    }

    private long complete(int rank, RowBlock block, long[] arrives) {
        int first = rank * chunks.total() + chunks.tag(block.source(), block.firstChunk());
        return Arrays.stream(arrives, first, first + block.chunkCount()).max().orElse(0);
    }
}
