package dev.weft.cuda;

import dev.weft.fabric.Fabric;
import dev.weft.op.Agreement;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Cut;
import dev.weft.plan.Hosts;
import dev.weft.plan.Planner;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.util.Arrays;
import java.util.List;

/**
 * Works out one rank's plan in agreement with the others, and the copies that carry it out. Used by
 * the thread that prepares the operator.
 *
 * @param fabric null where the peers' rows lie in host memory
 * @param staged whether rows travel through the ranks' host memory
 */
record CudaPlanning(
        Fabric fabric,
        boolean staged,
        Gpu gpu,
        int rank,
        Shards shards,
        DType aType,
        Wishes wishes) {

    /**
     * A chunk of at most so many bytes: smaller ones cost 4 us each on an H200 (2.5 for the copy, 2
     * for its flag), larger ones leave the grid without work for longer.
     */
    private static final long CHUNK_BYTES = 16L << 20;

    /** Through host memory a chunk makes three trips, one after the other: shorter ones. */
    private static final long STAGED_CHUNK_BYTES = 4L << 20;

    /** Rows that are worth a tile of their own. */
    private static final long BLOCK_ROWS = 256;

    /** What the user wants; zeros stand for Weft's own choice. */
    record Wishes(
            Algorithm algorithm,
            CudaEngine engine,
            long chunkRows,
            int splitsPerRank,
            long chunkCols,
            int copyStreams) {}

    /** The same on all ranks but for the rank itself; a mismatch names two of them. Collective. */
    RankPlan agreedPlan(long k) {
        if (fabric != null) {
            // First of all: what follows exchanges more or less by these.
            Agreement agreement = new Agreement(fabric);
            agreement.on("the engine's number", wishes.engine().ordinal());
            agreement.on("the algorithm's number", wishes.algorithm().ordinal());
            agreement.on("staging through host memory (0 no, 1 yes)", staged ? 1 : 0);
            agreement.settle();
        }
        Algorithm chosen = wishes.algorithm() == Algorithm.AUTO ? automatic() : wishes.algorithm();
        if (fabric == null && chosen != Algorithm.MESH_PULL && chosen != Algorithm.SEQUENTIAL) {
            throw new IllegalArgumentException(
                    "algorithm "
                            + chosen.label()
                            + " with peers in host memory: expected mesh-pull or sequential, since"
                            + " only this rank can copy");
        }
        if (staged && chosen == Algorithm.DIRECT) {
            throw new IllegalArgumentException(
                    "algorithm direct with rows that travel through host memory: expected ring,"
                            + " bidirectional-ring, mesh-push, mesh-pull or sequential, since no"
                            + " GPU reads another's rows");
        }
        Chunks chunks = cut(k, chosen);
        int lanes = wishes.copyStreams() > 0 ? wishes.copyStreams() : 1;
        if (fabric != null) {
            agree(k, chosen, chunks, lanes);
        }
        // On one host all ways between GPUs are alike.
        Hosts hosts = staged ? fabric.hosts() : Hosts.one(shards.ranks());
        return Planner.plan(chosen, chunks, lanes, rank, hosts);
    }

    /**
     * One GPU for all reads rows where they are; all else pulls by copy engine, but between hosts
     * who has the rows sends them, since it knows first when they are there.
     */
    private Algorithm automatic() {
        if (shards.ranks() == 1 || shards.totalRows() == 0) {
            return Algorithm.SEQUENTIAL;
        }
        if (fabric == null) {
            return Algorithm.MESH_PULL;
        }
        if (staged) {
            return Algorithm.MESH_PUSH;
        }
        long[] gpus = fabric.exchange(gpu.identity());
        boolean shared = Arrays.stream(gpus).allMatch(id -> id == gpu.identity());
        return shared ? Algorithm.DIRECT : Algorithm.MESH_PULL;
    }

    private void agree(long k, Algorithm chosen, Chunks chunks, int lanes) {
        Agreement agreement = new Agreement(fabric);
        agreement.on("K", k);
        agreement.on("M", shards.totalRows());
        for (int r = 0; r < shards.ranks(); r++) {
            agreement.on("the rows of rank " + fabric.worldRank(r), shards.rows(r));
        }
        agreement.on("A's dtype (0 fp32, 1 fp16, 2 bf16)", aType.ordinal());
        agreement.on("the chosen algorithm's number", chosen.ordinal());
        agreement.on("the number of chunks", chunks.total());
        agreement.on("chunk rows", wishes.chunkRows());
        agreement.on("splits per rank", wishes.splitsPerRank());
        agreement.on("chunk columns", wishes.chunkCols());
        agreement.on("copy streams", lanes);
        agreement.settle();
    }

    /** Blocks of rows are multiplied as they come: a block is a chunk, or some tiles of it. */
    private Chunks cut(long k, Algorithm chosen) {
        Cut cut = new Cut(wishes.chunkRows(), wishes.splitsPerRank(), wishes.chunkCols());
        if (wishes.chunkCols() % TileShape.K_BLOCK != 0) {
            throw new IllegalArgumentException(
                    "chunks of "
                            + wishes.chunkCols()
                            + " columns on a GPU: expected a multiple of "
                            + TileShape.K_BLOCK);
        }
        if (!cut.givesRows()) {
            cut = new Cut(automaticRows(k, chosen), 0, wishes.chunkCols());
        }
        long blockRows = Math.max(cut.chunkRows(), BLOCK_ROWS);
        return cut.chunks(shards, k, 1, blockRows, Chunks.MIN_CHUNKS_PER_SOURCE);
    }

    /** Whole shards where {@link ArrivalCut} cuts them further. */
    private long automaticRows(long k, Algorithm chosen) {
        if (wishes.engine() == CudaEngine.GATED && pullsAlone(chosen)) {
            return Math.max(1, shards.maxRows());
        }
        long most = staged ? STAGED_CHUNK_BYTES : CHUNK_BYTES;
        return Math.max(1, most / (k * aType.bytes()) / BLOCK_ROWS) * BLOCK_ROWS;
    }

    /** Whether a rank decides by itself how what it gathers is cut. */
    private boolean pullsAlone(Algorithm chosen) {
        return chosen == Algorithm.MESH_PULL
                && !staged
                && wishes.copyStreams() <= 1
                && wishes.chunkRows() == 0
                && wishes.splitsPerRank() == 0
                && wishes.chunkCols() == 0;
    }

    /**
     * @param n columns of the first product
     * @param shape of the gated kernel's tiles; null where there is none
     */
    CopyList copies(RankPlan plan, long n, TileShape shape) {
        boolean gated = plan.algorithm() != Algorithm.SEQUENTIAL;
        boolean cuts = shape != null && pullsAlone(plan.algorithm());
        return CopyList.of(plan, cuts ? arrivalCut(plan, n, shape) : null, gated);
    }

    private ArrivalCut arrivalCut(RankPlan plan, long n, TileShape shape) {
        List<Long> arriving =
                plan.lanes().stream()
                        .flatMap(lane -> lane.transfers().stream())
                        .map(t -> plan.chunks().chunk(t.source(), t.chunk()).rows())
                        .toList();
        long k = plan.chunks().cols();
        return ArrivalCut.of(shards.rows(rank), arriving, k, n, aType.bytes(), shape);
    }
}
