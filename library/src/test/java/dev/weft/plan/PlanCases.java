package dev.weft.plan;

import dev.weft.plan.step.StepPlan;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;

/** Seeded cases and the plans of whole groups. */
public final class PlanCases {

    private PlanCases() {}

    static final long COLS = 3;

    static GatherRequest request(Chunks chunks, int lanes, Hosts hosts) {
        return new GatherRequest(chunks, lanes, hosts, COLS);
    }

    /** The plan of one of the ranks of one host. */
    static GatherView plan(GatherWriter writer, Chunks chunks, int lanes, int rank) {
        return plan(writer, chunks, lanes, rank, Hosts.one(chunks.shards().ranks()));
    }

    static GatherView plan(GatherWriter writer, Chunks chunks, int lanes, int rank, Hosts hosts) {
        List<StepPlan> plans = writer.plans(request(chunks, lanes, hosts));
        return new GatherView(plans.get(rank), writer.cut(chunks));
    }

    /** The plans of all ranks, in rank order. */
    static List<StepPlan> plans(GatherWriter writer, Chunks chunks, int lanes) {
        return plans(writer, chunks, lanes, Hosts.one(chunks.shards().ranks()));
    }

    static List<StepPlan> plans(GatherWriter writer, Chunks chunks, int lanes, Hosts hosts) {
        return List.copyOf(writer.plans(request(chunks, lanes, hosts)));
    }

    /** Algorithms that have plans of their own. */
    static List<Algorithm> algorithms() {
        List<Algorithm> algorithms = new ArrayList<>(List.of(Algorithm.values()));
        algorithms.remove(Algorithm.AUTO);
        return algorithms;
    }

    /** Algorithms whose plans are not flat where some ranks share memory and others do not. */
    static List<Algorithm> hierarchicalAlgorithms() {
        return List.of(
                Algorithm.RING,
                Algorithm.BIDIRECTIONAL_RING,
                Algorithm.MESH_PUSH,
                Algorithm.MESH_PULL);
    }

    /** All of one size, or uneven, up to {@code maxSize} ranks on each. */
    static Hosts randomHosts(Random random, int count, int maxSize) {
        int size = 1 + random.nextInt(maxSize);
        boolean isEven = random.nextInt(3) == 0;
        return Hosts.of(
                IntStream.generate(() -> isEven ? size : 1 + random.nextInt(maxSize))
                        .limit(count)
                        .toArray());
    }

    /** Even, uneven, partly empty, all on one rank, or all empty. */
    static Shards randomShards(Random random, int ranks, int maxRows) {
        long[] rows = new long[ranks];
        int kind = random.nextInt(8);
        if (kind == 0) {
            rows[random.nextInt(ranks)] = 1 + random.nextInt(maxRows * 4);
        } else if (kind == 1) {
            return Shards.even(random.nextInt(maxRows * ranks + 1), ranks);
        } else if (kind >= 3) {
            for (int r = 0; r < ranks; r++) {
                boolean isEmpty = kind >= 6 && random.nextInt(3) == 0;
                rows[r] = isEmpty ? 0 : random.nextInt(maxRows + 1);
            }
        }
        return Shards.of(rows);
    }

    /** Every way to cut, with blocks smaller and larger than chunks. */
    static Chunks randomChunks(Random random, Shards shards) {
        long cols = 1 + random.nextInt(20);
        long blockRows = random.nextInt(10) == 0 ? Long.MAX_VALUE : 1 + random.nextInt(12);
        return randomChunks(random, shards, cols, blockRows);
    }

    /** Every way to cut. */
    public static Chunks randomChunks(Random random, Shards shards, long cols, long blockRows) {
        Chunks chunks =
                switch (random.nextInt(3)) {
                    case 0 -> Chunks.byRows(shards, cols, 1 + random.nextInt(9), blockRows);
                    case 1 -> Chunks.bySplits(shards, cols, 1 + random.nextInt(8), blockRows);
                    default -> Chunks.automatic(shards, cols, 1 + random.nextInt(8), blockRows);
                };
        return random.nextInt(3) == 0 ? chunks.withChunkCols(1 + cols / 4) : chunks;
    }

    static Chunks randomChunks(long seed, int ranks) {
        Random random = new Random(seed);
        int maxRows = ranks <= 8 ? 60 : ranks <= 24 ? 24 : 8;
        return randomChunks(random, randomShards(random, ranks, maxRows));
    }
}
