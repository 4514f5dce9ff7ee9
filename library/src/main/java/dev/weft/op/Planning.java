package dev.weft.op;

import dev.weft.fabric.transport.Agreement;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.op.exec.Description;
import dev.weft.op.exec.Description.Feature;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.RankPlan;
import dev.weft.plan.cut.Cut;
import dev.weft.search.Candidate;
import dev.weft.search.Problem;
import java.util.List;

/**
 * How an operator's plan follows from what its caller wants: cuts shards into chunks and blocks and
 * has plans written, the same on every rank. Where ranks could come to different numbers, as
 * engines differ between unlike hosts, the first rank's count for all.
 *
 * @param workers threads that multiply
 */
record Planning(
        Transport fabric, Description wanted, int workers, int rowQuantum, long mostBlockRows) {

    /** Collective. */
    static Planning of(Transport fabric, Gemm gemm, Description wanted, int workers) {
        Agreement agreement = new Agreement(fabric);
        return new Planning(
                fabric,
                wanted,
                (int) agreement.ofFirst(workers),
                (int) agreement.ofFirst(gemm.rowQuantum()),
                agreement.ofFirst(gemm.blockRows()));
    }

    List<RankPlan> plans(Candidate candidate) {
        return plans(candidate.algorithm(), candidate.cut(), candidate.lanes());
    }

    List<RankPlan> plans(PlanWriter writer) {
        return plans(writer, wanted.cut(), lanes(writer));
    }

    private List<RankPlan> plans(PlanWriter writer, Cut rows, int lanes) {
        int takers = Math.max(lanes, workers);
        long blockRows = Cut.blockRows(wanted.shards(), takers, rowQuantum, mostBlockRows);
        Chunks chunks = rows.chunks(wanted.shards(), wanted.k(), rowQuantum, blockRows);
        return agreed(writer.plans(chunks, lanes, fabric.hosts()));
    }

    List<RankPlan> agreed(List<RankPlan> plans) {
        return Description.agreed(plans, fabric, fabric.hosts());
    }

    /** As few as needed; the compute workers of a sequential operator are idle as it gathers. */
    private int lanes(PlanWriter algorithm) {
        if (wanted.commWorkers() > 0) {
            return wanted.commWorkers();
        }
        return algorithm == Algorithm.SEQUENTIAL ? workers : 1;
    }

    /** What is to be done, for the search for a plan. */
    Problem problem() {
        return wanted.problem(
                wanted.wants(Feature.KEPT), workers, wanted.commWorkers(), fabric.hosts());
    }
}
