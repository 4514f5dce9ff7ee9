package dev.weft.plan;

import dev.weft.plan.RankPlan.Storage;
import dev.weft.plan.Transfer.Initiator;
import java.util.List;

/**
 * Writes plans. Pure: the same arguments give the same plan on every rank and every machine, any
 * thread may call it, and the plan of one rank costs no more than what that rank sends, receives
 * and consumes. {@link PlanChecker} accepts every set of plans that is written here.
 */
public final class Planner {

    private Planner() {}

    /**
     * What {@code rank} does when the group gathers with {@code algorithm} and each rank has {@code
     * lanes} communication workers. {@link Algorithm#AUTO} must have been resolved before.
     */
    public static RankPlan plan(Algorithm algorithm, Chunks chunks, int lanes, int rank) {
        int ranks = chunks.shards().ranks();
        checkRank(rank, ranks);
        int laneCount = lanes(algorithm, ranks, lanes);
        if (algorithm == Algorithm.DIRECT) {
            return withoutTransfers(algorithm, Storage.IN_PLACE, chunks, rank);
        }
        if (ranks == 1) {
            return withoutTransfers(algorithm, Storage.GATHERED, chunks, rank);
        }
        Routing routing =
                switch (algorithm) {
                    case RING -> RingRouting.oneWay(chunks, laneCount);
                    case BIDIRECTIONAL_RING -> RingRouting.bothWays(chunks, laneCount);
                    case MESH_PUSH -> new MeshRouting(chunks, laneCount, Initiator.SENDER);
                    case MESH_PULL, SEQUENTIAL ->
                            new MeshRouting(chunks, laneCount, Initiator.RECEIVER);
                    case AUTO, DIRECT -> throw new AssertionError(algorithm);
                };
        return new PlanWriter(algorithm, Storage.GATHERED, chunks, routing).write(rank, laneCount);
    }

    /**
     * A ring in one lane that keeps no gathered A: the shard that arrives in step 1, 2, ... R-1
     * lands in buffer {@code step % 2}, and from step 3 on only after the receiver has released the
     * shard of two steps before. The operator guarantees that both buffers are free when the call
     * starts.
     */
    public static RankPlan pingPongRing(Chunks chunks, int rank) {
        int ranks = chunks.shards().ranks();
        checkRank(rank, ranks);
        if (ranks == 1) {
            return withoutTransfers(Algorithm.RING, Storage.PING_PONG, chunks, rank);
        }
        return new PlanWriter(
                        Algorithm.RING, Storage.PING_PONG, chunks, RingRouting.oneWay(chunks, 1))
                .write(rank, 1);
    }

    /**
     * How many lanes each rank's plan has when {@code requested} are wanted: none where nothing
     * travels, two at least where there are two directions, and no lanes left over where every peer
     * gets the same number.
     */
    public static int lanes(Algorithm algorithm, int ranks, int requested) {
        if (ranks < 1 || requested < 1) {
            throw new IllegalArgumentException(
                    requested
                            + " lanes for each of "
                            + ranks
                            + " ranks: expected at least one of each");
        }
        if (algorithm == Algorithm.AUTO) {
            throw new IllegalArgumentException(
                    "algorithm auto has no plan of its own: expected the algorithm it stands for");
        }
        if (ranks == 1) {
            return 0;
        }
        return switch (algorithm) {
            case RING -> requested;
            case BIDIRECTIONAL_RING -> Math.max(2, requested);
            case MESH_PUSH, MESH_PULL, SEQUENTIAL -> MeshRouting.lanes(ranks, requested);
            case DIRECT -> 0;
            case AUTO -> throw new AssertionError(algorithm);
        };
    }

    private static RankPlan withoutTransfers(
            Algorithm algorithm, Storage storage, Chunks chunks, int rank) {
        List<RowBlock> consumption = ConsumptionOrder.rotated(chunks, rank);
        return new RankPlan(algorithm, storage, rank, chunks, List.of(), List.of(), consumption);
    }

    private static void checkRank(int rank, int ranks) {
        if (rank < 0 || rank >= ranks) {
            throw new IllegalArgumentException(
                    "rank "
                            + rank
                            + " of "
                            + ranks
                            + " ranks: expected zero or more and less than the ranks");
        }
    }
}
