package dev.weft.op;

import dev.weft.fabric.transport.Agreement;
import dev.weft.fabric.transport.Transport;
import dev.weft.gemm.Gemm;
import dev.weft.op.exec.Description;
import dev.weft.op.exec.Description.Feature;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import dev.weft.plan.GatherRequest;
import dev.weft.plan.GatherRequest.Option;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Plan;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.cut.Cut;
import dev.weft.search.Candidate;
import dev.weft.search.Problem;
import java.util.EnumSet;
import java.util.Set;

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
     * @param timesFewer how many times fewer rows a product has than A, because they are in groups
     */
    static Planning of(
            Transport fabric,
            Gemm gemm,
            Description wanted,
            int workers,
            int columnParts,
            long timesFewer) {
        Agreement agreement = new Agreement(fabric);
        int quantum = gemm.rowQuantum();
        long mostRows = gemm.blockRows() * timesFewer;
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

    Plan plan(Candidate candidate) {
        return plan((GatherWriter) candidate.algorithm(), candidate.cut(), candidate.lanes());
    }

    Plan plan(GatherWriter writer) {
        return plan(writer, lanes(writer));
    }

    Plan plan(GatherWriter writer, int lanes) {
        return plan(writer, wanted.cut(), lanes);
    }

    private Plan plan(GatherWriter writer, Cut rows, int lanes) {
        GatherRequest request =
                wanted.request(
                        wanted.chunks() != null ? wanted.chunks() : chunks(writer, rows, lanes),
                        lanes,
                        fabric.hosts(),
                        options(writer));
        return Description.agreed(writer, request, fabric);
    }

    private Chunks chunks(GatherWriter writer, Cut rows, int lanes) {
        // The lanes of a sequential operator share chunks, not rows.
        int takers = writer == Algorithm.SEQUENTIAL ? rowTakers : Math.max(lanes, rowTakers);
        long blockRows = Cut.blockRows(wanted.shards(), takers, rowQuantum, mostBlockRows);
        return rows.chunks(wanted.shards(), wanted.k(), rowQuantum, blockRows);
    }

    private Set<Option> options(GatherWriter writer) {
        Set<Option> options = EnumSet.noneOf(Option.class);
        if (wanted.wants(Feature.KEPT)) {
            options.add(Option.KEPT);
        }
        if (wanted.wants(Feature.SIDE_BY_SIDE)) {
            options.add(Option.SIDE_BY_SIDE);
        }
        if (wanted.wants(Feature.SUMMARIES)) {
            options.add(Option.COUNTED);
        }
        if (isInGathered(writer)) {
            options.add(Option.A_IN_GATHERED);
        }
        return options;
    }

    /**
     * Whether a rank's A lies in gathered A. Not if shards lie side by side: peers read the gaps
     * between rows too slowly. Not for the fabric's own gather, which reads shards from elsewhere.
     */
    boolean isInGathered(PlanWriter writer) {
        return wanted.gathersOnly()
                && !wanted.wants(Feature.SIDE_BY_SIDE)
                && (writer != Algorithm.SEQUENTIAL || fabric.size() == 1);
    }

    /** Whether the plan leaves the gather to the fabric's own, if it has one. */
    boolean leavesGather(Plan plan) {
        return fabric.size() > 1
                && plan.algorithm() == Algorithm.SEQUENTIAL
                && !wanted.wants(Feature.SIDE_BY_SIDE);
    }

    /** As few as needed; a sequential operator's compute workers are idle while it gathers. */
    private int lanes(GatherWriter algorithm) {
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
