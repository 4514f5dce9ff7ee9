package dev.weft.op;

import dev.weft.fabric.Fabric;
import dev.weft.gemm.Gemm;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Cut;
import dev.weft.plan.Hosts;
import dev.weft.plan.Planner;
import dev.weft.plan.RankPlan;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import java.lang.System.Logger.Level;
import java.util.List;

/**
 * How an operator's plan follows from what its caller wants: cuts shards into chunks and blocks and
 * has plans written, the same on every rank. Where ranks could come to different numbers, as
 * engines differ between unlike hosts, the first rank's count for all.
 */
final class Planning implements AutoProblem {

    private final Fabric fabric;
    private final Agreement agreement;
    private final Shards shards;
    private final long k;
    private final DType aType;
    private final DType outType;
    private final List<Long> columns;
    private final Cut cut;
    private final int workers;
    private final int commWorkers;
    private final boolean keepGathered;
    private final String engine;
    private final String otherSettings;
    private final int rowQuantum;
    private final long mostBlockRows;

    /**
     * Collective.
     *
     * @param columns N of each product of this rank
     * @param commWorkers 0 where the caller leaves it to Weft
     * @param otherSettings that have no part in a plan, but in its time
     */
    Planning(
            Fabric fabric,
            Gemm gemm,
            Shards shards,
            long k,
            DType aType,
            DType outType,
            List<Long> columns,
            Cut cut,
            int workers,
            int commWorkers,
            boolean keepGathered,
            String otherSettings) {
        this.fabric = fabric;
        this.agreement = new Agreement(fabric);
        this.shards = shards;
        this.k = k;
        this.aType = aType;
        this.outType = outType;
        this.columns = List.copyOf(columns);
        this.cut = cut;
        this.commWorkers = commWorkers;
        this.keepGathered = keepGathered;
        this.engine = gemm.name();
        this.otherSettings = otherSettings;
        this.workers = (int) agreement.ofFirst(workers);
        this.rowQuantum = (int) agreement.ofFirst(gemm.rowQuantum());
        this.mostBlockRows = agreement.ofFirst(gemm.blockRows());
    }

    RankPlan plan(Candidate candidate) {
        Algorithm algorithm = candidate.algorithm();
        return agreed(algorithm, chunks(algorithm, candidate.chunksPerSource()), lanes(algorithm));
    }

    /**
     * @param model whose chunks and lanes are taken, or null
     */
    RankPlan plan(Algorithm algorithm, RankPlan model) {
        return model == null
                ? agreed(algorithm, chunks(algorithm, 0), lanes(algorithm))
                : agreed(algorithm, model.chunks(), Math.max(1, model.lanes().size()));
    }

    RankPlan pingPong() {
        Chunks chunks = chunks(Algorithm.RING, 0);
        agreement.on("the plan's digest", digest(Algorithm.RING, chunks, 1)).settle();
        return Planner.pingPongRing(chunks, fabric.rank());
    }

    private RankPlan agreed(Algorithm algorithm, Chunks chunks, int lanes) {
        agreement.on("the plan's digest", digest(algorithm, chunks, lanes)).settle();
        RankPlan plan = Planner.plan(algorithm, chunks, lanes, fabric.rank(), fabric.hosts());
        System.getLogger("dev.weft")
                .log(
                        Level.DEBUG,
                        "rank {0}: {1}, {2} chunks, {3} lanes, {4} blocks",
                        fabric.rank(),
                        algorithm.label(),
                        chunks.total(),
                        plan.lanes().size(),
                        plan.consumption().size());
        return plan;
    }

    /** Plans are pure functions of these. */
    private long digest(Algorithm algorithm, Chunks chunks, int lanes) {
        return 31L * (31L * algorithm.ordinal() + lanes) + chunks.hashCode();
    }

    @Override
    public Hosts hosts() {
        return fabric.hosts();
    }

    @Override
    public DType aType() {
        return aType;
    }

    @Override
    public DType outType() {
        return outType;
    }

    @Override
    public List<Long> columns() {
        return columns;
    }

    @Override
    public boolean keepGathered() {
        return keepGathered;
    }

    @Override
    public int workers() {
        return workers;
    }

    /**
     * As few as needed, but a sequential operator's compute workers are idle while it gathers: it
     * may use as many.
     */
    @Override
    public int lanes(Algorithm algorithm) {
        if (commWorkers > 0) {
            return commWorkers;
        }
        return algorithm == Algorithm.SEQUENTIAL ? workers : 1;
    }

    @Override
    public boolean cutGiven() {
        return cut.givesRows();
    }

    @Override
    public Chunks chunks(Algorithm algorithm, int chunksPerSource) {
        int takers = Math.max(lanes(algorithm), workers);
        long blockRows = Cut.blockRows(shards, takers, rowQuantum, mostBlockRows);
        int count = chunksPerSource == 0 ? Chunks.MIN_CHUNKS_PER_SOURCE : chunksPerSource;
        return cut.chunks(shards, k, rowQuantum, blockRows, count);
    }

    @Override
    public double gatheredBytes() {
        return (double) shards.totalRows() * k * aType.bytes();
    }

    @Override
    public String key() {
        return String.join(
                " | ",
                fabric.kind(),
                hosts().toString(),
                fabric.cores().toString(),
                engine,
                shards.toString(),
                k + " " + aType + " " + outType + " " + columns + " " + cut,
                workers + " " + commWorkers + " " + keepGathered,
                otherSettings);
    }
}
