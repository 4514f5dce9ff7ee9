package dev.weft.plan;

import dev.weft.plan.RankPlan.Lane;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.RankPlan.Transfer;
import dev.weft.plan.RankPlan.Transfer.Initiator;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;

/**
 * Writes plans from a list of transfers. Lanes are filled in the order of the calls; what the ranks
 * expect and the order in which they multiply follow from that. Rows are kept in gathered A. {@link
 * PlanChecker} checks the result. Used by one thread.
 *
 * {@snippet :
 * // Every rank sends its shard to every other: a mesh in ten lines.
 * List<RankPlan> mesh(Chunks chunks, Hosts hosts) {
 *     PlanBuilder builder = new PlanBuilder("my-mesh", chunks, 1);
 *     int ranks = chunks.shards().ranks();
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
    private final Chunks chunks;
    private final int ranks;
    private final int laneCount;

    /** By rank and lane. */
    private final List<List<List<Transfer>>> lanes = new ArrayList<>();

    private Pacing pacing = Pacing.BLOCK_BY_BLOCK;

    /** Starts plans with this name and this many lanes on every rank; lanes may stay empty. */
    public PlanBuilder(String name, Chunks chunks, int laneCount) {
        this.name = name;
        this.chunks = chunks;
        this.ranks = chunks.shards().ranks();
        if (laneCount < 0 || laneCount > MOST_LANES) {
            throw new PlanException(
                    name, "%s lanes on every rank: expected 0 to %s", laneCount, MOST_LANES);
        }
        this.laneCount = laneCount;
        for (int rank = 0; rank < ranks; rank++) {
            List<List<Transfer>> own = new ArrayList<>();
            for (int lane = 0; lane < laneCount; lane++) {
                own.add(new ArrayList<>());
            }
            lanes.add(own);
        }
    }

    /** How products keep pace with arrivals; by default block by block. */
    public PlanBuilder pacing(Pacing newPacing) {
        this.pacing = newPacing;
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
        add(from, lane, transfer(from, to, source, chunk, Initiator.SENDER));
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
        add(to, lane, transfer(from, to, source, chunk, Initiator.RECEIVER));
        return this;
    }

    private void add(int rank, int lane, Transfer transfer) {
        check("lane", lane, laneCount);
        lanes.get(rank).get(lane).add(transfer);
    }

    private void check(String what, int value, int end) {
        if (value < 0 || value >= end) {
            throw new PlanException(
                    name, "a transfer with %s %s: expected 0 to %s", what, value, end - 1);
        }
    }

    private Transfer transfer(int from, int to, int source, int chunk, Initiator initiator) {
        check("rank", from, ranks);
        check("rank", to, ranks);
        check("source", source, ranks);
        check("chunk", chunk, chunks.count(source));
        return new Transfer(
                from, to, source, chunk, chunks.tag(source, chunk), initiator, source, 0);
    }

    /** The plans of all ranks. */
    public List<RankPlan> build() {
        long[] arrivals = arrivalRows();
        List<RankPlan> plans = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            List<Lane> own = new ArrayList<>();
            for (List<Transfer> lane : lanes.get(rank)) {
                own.add(new Lane(own.size(), lane));
            }
            plans.add(
                    new RankPlan(
                            name,
                            Storage.GATHERED,
                            rank,
                            chunks,
                            own,
                            arrivals(rank),
                            consumption(rank, arrivals),
                            List.of(),
                            pacing));
        }
        return List.copyOf(plans);
    }

    private List<Lane> arrivals(int rank) {
        List<Lane> arrivals = new ArrayList<>();
        for (List<List<Transfer>> own : lanes) {
            for (int lane = 0; lane < own.size(); lane++) {
                List<Transfer> here = own.get(lane).stream().filter(t -> t.to() == rank).toList();
                if (!here.isEmpty()) {
                    arrivals.add(new Lane(lane, here));
                }
            }
        }
        return arrivals;
    }

    /**
     * By rank and tag: when a chunk arrives if all lanes are equally fast; {@link Long#MAX_VALUE}
     * if never.
     */
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
        return arrives;
    }

    /** How far one lane has come, in transfers and in time. */
    private final class LaneClock {
        private final List<Transfer> transfers;
        private int done;
        private long now;

        LaneClock(List<Transfer> transfers) {
            this.transfers = transfers;
        }

        /** Moves whatever is ready; returns whether anything was. */
        boolean advance(long[] arrives) {
            int before = done;
            for (; done < transfers.size(); done++) {
                Transfer next = transfers.get(done);
                long there = arrives[next.from() * chunks.total() + next.tag()];
                if (there == Long.MAX_VALUE) {
                    break;
                }
                now = Math.max(now, there) + chunks.chunk(next.source(), next.chunk()).rows();
                arrives[next.to() * chunks.total() + next.tag()] = now;
            }
            return done > before;
        }
    }

    private List<RowBlock> consumption(int rank, long[] arrives) {
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
