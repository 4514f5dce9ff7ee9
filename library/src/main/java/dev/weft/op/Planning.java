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
 * Works out an operator's plan from its description: cuts shards into chunks and blocks and has
 * plans written, the same on every rank. If ranks could get different numbers, because engines
 * differ between unlike hosts, those of the first rank count for all.
 *
 * @param workers threads that multiply
 * @param rowTakers how many of these share rows; others share columns with them
 */
record Planning(
        Transport fabric,
        Description wanted,
        int workers,
        int rowTakers,
        int rowQuantum,
        long mostBlockRows) {

    /**
     * Collective.
     *
     * @param columnParts the caller's choice; 0 leaves it to Weft
     */
    static Planning of(
            Transport fabric, Gemm gemm, Description wanted, int workers, int columnParts) {
        Agreement agreement = new Agreement(fabric);
        int quantum = gemm.rowQuantum();
        long mostRows = gemm.blockRows();
        int takers =
                columnParts > 0
                        ? Math.max(1, workers / columnParts)
                        : Cut.rowTakers(
                                wanted.shards(), workers, wanted.columns(), quantum, mostRows);
        return new Planning(
                fabric,
                wanted,
                (int) agreement.ofFirst(workers),
                (int) agreement.ofFirst(takers),
                (int) agreement.ofFirst(quantum),
                agreement.ofFirst(mostRows));
    }

    List<RankPlan> plans(Candidate candidate) {
        return plans(candidate.algorithm(), candidate.cut(), candidate.lanes());
    }

    List<RankPlan> plans(PlanWriter writer) {
        return plans(writer, wanted.cut(), lanes(writer));
    }

    private List<RankPlan> plans(PlanWriter writer, Cut rows, int lanes) {
        // The lanes of a sequential operator share chunks, not rows.
        int takers = writer == Algorithm.SEQUENTIAL ? rowTakers : Math.max(lanes, rowTakers);
        long blockRows = Cut.blockRows(wanted.shards(), takers, rowQuantum, mostBlockRows);
        Chunks chunks = rows.chunks(wanted.shards(), wanted.k(), rowQuantum, blockRows);
        return agreed(writer.plans(chunks, lanes, fabric.hosts()));
    }

    List<RankPlan> agreed(List<RankPlan> plans) {
        return Description.agreed(plans, fabric, fabric.hosts());
    }

    /** As few as needed; a sequential operator's compute workers are idle while it gathers. */
    private int lanes(PlanWriter algorithm) {
        if (wanted.commWorkers() > 0) {
            return wanted.commWorkers();
        }
        return algorithm == Algorithm.SEQUENTIAL ? workers : 1;
    }

    /** The problem, for the search for a plan. */
    Problem problem() {
        return wanted.problem(
                wanted.wants(Feature.KEPT), workers, wanted.commWorkers(), fabric.hosts());
    }
}
