package dev.weft.op;

import dev.weft.fabric.transport.Agreement;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.op.exec.Description;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.cut.Cut;
import dev.weft.tensor.DType;
import java.util.List;

/**
 * How an operator's plan follows from what its caller wants: cuts shards into chunks and blocks and
 * has plans written, the same on every rank. Where ranks could come to different numbers, as
 * engines differ between unlike hosts, the first rank's count for all.
 */
final class Planning implements AutoProblem {

    private final Transport fabric;
    private final Agreement agreement;
    private final Description wanted;
    private final int workers;
    private final boolean keepGathered;
    private final String engine;
    private final String otherSettings;
    private final int rowQuantum;
    private final long mostBlockRows;

    /**
     * Collective.
     *
     * @param workers threads that multiply
     * @param otherSettings that have no part in a plan, but in its time
     */
    Planning(
            Transport fabric,
            Gemm gemm,
            Description wanted,
            int workers,
            boolean keepGathered,
            String otherSettings) {
        this.fabric = fabric;
        this.agreement = new Agreement(fabric);
        this.wanted = wanted;
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

    List<RankPlan> agreed(List<RankPlan> plans) {
        return Description.agreed(plans, fabric, fabric.hosts());
    }

    @Override
    public Hosts hosts() {
        return fabric.hosts();
    }

    @Override
    public DType aType() {
        return wanted.aType();
    }

    @Override
    public DType outType() {
        return wanted.outType();
    }

    @Override
    public List<Long> columns() {
        return wanted.columns();
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
        if (wanted.commWorkers() > 0) {
            return wanted.commWorkers();
        }
        return algorithm == Algorithm.SEQUENTIAL ? workers : 1;
    }

    @Override
    public boolean cutGiven() {
        return wanted.cut().givesRows();
    }

    @Override
    public Chunks chunks(PlanWriter algorithm, int chunksPerSource) {
        int takers = Math.max(lanes(algorithm), workers);
        long blockRows = Cut.blockRows(wanted.shards(), takers, rowQuantum, mostBlockRows);
        int count = chunksPerSource == 0 ? Chunks.MIN_CHUNKS_PER_SOURCE : chunksPerSource;
        return wanted.cut().chunks(wanted.shards(), wanted.k(), rowQuantum, blockRows, count);
    }

    @Override
    public double gatheredBytes() {
        return (double) wanted.shards().totalRows() * wanted.k() * wanted.aType().bytes();
    }

    @Override
    public String key() {
        return String.join(
                " | ",
                fabric.kind(),
                hosts().toString(),
                fabric.cores().toString(),
                engine,
                wanted.shards().toString(),
                wanted.k()
                        + " "
                        + wanted.aType()
                        + " "
                        + wanted.outType()
                        + " "
                        + wanted.columns()
                        + " "
                        + wanted.cut(),
                workers + " " + wanted.commWorkers() + " " + keepGathered,
                otherSettings);
    }
}
