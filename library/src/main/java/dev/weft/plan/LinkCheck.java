package dev.weft.plan;

import java.util.List;

/** No directed link carries more than its algorithm's optimum; {@link PlanChecker} has the list. */
final class LinkCheck {

    private final Algorithm algorithm;
    private final Chunks chunks;
    private final Shards shards;
    private final int ranks;

    private LinkCheck(RankPlan plan) {
        this.algorithm = plan.algorithm();
        this.chunks = plan.chunks();
        this.shards = chunks.shards();
        this.ranks = plan.ranks();
    }

    static void check(List<RankPlan> plans) {
        LinkCheck links = new LinkCheck(plans.getFirst());
        long[][] limits = links.limits();
        long[][] loads = new long[plans.size()][plans.size()];
        for (RankPlan plan : plans) {
            for (Lane lane : plan.lanes()) {
                for (Transfer transfer : lane.transfers()) {
                    links.load(transfer, loads, limits);
                }
            }
        }
    }

    private void load(Transfer transfer, long[][] loads, long[][] limits) {
        int from = transfer.from();
        int to = transfer.to();
        Chunk chunk = chunks.chunk(transfer.source(), transfer.chunk());
        loads[from][to] += chunk.rows() * chunk.cols();
        // Limits are kept in half rows: half a shard need not be a whole number of rows.
        if (2 * loads[from][to] > limits[from][to] * chunks.cols()) {
            throw new PlanException(
                    from,
                    transfer,
                    "overloads the link from rank "
                            + from
                            + " to rank "
                            + to
                            + ": "
                            + algorithm.label()
                            + " needs at most "
                            + limits[from][to] / 2.0
                            + " rows there");
        }
    }

    private long[][] limits() {
        long[][] limits = new long[ranks][ranks];
        for (int from = 0; from < ranks; from++) {
            for (int to = 0; to < ranks; to++) {
                limits[from][to] = from == to ? 0 : limitHalfRows(from, to);
            }
        }
        return limits;
    }

    private long limitHalfRows(int from, int to) {
        return switch (algorithm) {
            case RING -> isNext(from, to) ? 2 * (shards.totalRows() - shards.rows(to)) : 0;
            case BIDIRECTIONAL_RING -> bothWaysLimitHalfRows(from, to);
            case MESH_PUSH, MESH_PULL, SEQUENTIAL -> 2 * shards.rows(from);
            case DIRECT, AUTO -> 0;
        };
    }

    private long bothWaysLimitHalfRows(int from, int to) {
        if (ranks == 2) {
            return 2 * shards.rows(from);
        }
        if (!isNext(from, to) && !isNext(to, from)) {
            return 0;
        }
        int direction = isNext(from, to) ? 1 : -1;
        long limit = 0;
        for (int distance = 1; 2 * distance <= ranks; distance++) {
            int source = Math.floorMod(to - direction * distance, ranks);
            long rows = shards.rows(source);
            boolean isEquallyFar = 2 * distance == ranks;
            limit += isEquallyFar ? rows + 2 * Math.min(rows, chunks.spanRows(source)) : 2 * rows;
        }
        return limit;
    }

    private boolean isNext(int from, int to) {
        return (from + 1) % ranks == to;
    }
}
