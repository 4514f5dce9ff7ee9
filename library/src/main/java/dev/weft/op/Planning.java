package dev.weft.op;

import dev.weft.fabric.transport.Agreement;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Cut;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanChecker;
import dev.weft.plan.PlanDigest;
import dev.weft.plan.PlanWriter;
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

    private static final System.Logger LOG = System.getLogger("dev.weft");

    private final Transport fabric;
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
            Transport fabric,
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

    List<RankPlan> plans(Candidate candidate) {
        PlanWriter algorithm = candidate.algorithm();
        return plans(algorithm, chunks(algorithm, candidate.chunksPerSource()));
    }

    List<RankPlan> plans(PlanWriter writer) {
        return plans(writer, chunks(writer, 0));
    }

    private List<RankPlan> plans(PlanWriter writer, Chunks chunks) {
        return agreed(writer.plans(chunks, lanes(writer), fabric.hosts()));
    }

    /**
     * Compares the plans with those of the other ranks, and has the first rank prove them where
     * Weft has not written them. Collective.
     */
    List<RankPlan> agreed(List<RankPlan> plans) {
        agreement.on("the plan's digest", PlanDigest.of(plans)).settle();
        if (fabric.rank() == 0) {
            PlanChecker.checkGiven(plans, fabric.hosts())
                    .ifPresent(skipped -> LOG.log(Level.WARNING, skipped));
        }
        RankPlan plan = plans.get(fabric.rank());
        LOG.log(
                Level.DEBUG,
                "rank {0}: {1}, {2} chunks, {3} lanes, {4} blocks",
                fabric.rank(),
                plan.name(),
                plan.chunks().total(),
                plan.lanes().size(),
                plan.consumption().size());
        return plans;
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
    public int lanes(PlanWriter algorithm) {
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
    public Chunks chunks(PlanWriter algorithm, int chunksPerSource) {
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
