package dev.weft.plan;

import dev.weft.plan.step.Buffer.Kind;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.StepPlanBuilder;
import java.util.ArrayList;
import java.util.List;

/**
 * Writes reductions of ranks that read each other's memory: sums are read where they are, and
 * finished rows are copied.
 */
final class LinkedReduceSteps {

    private final ReductionRequest request;
    private final List<Integer> multiplying;
    private final StepPlanBuilder builder;

    /** By rank: sums of the rows that it multiplies. */
    private final List<Part> sums = new ArrayList<>();

    LinkedReduceSteps(ReductionRequest request) {
        this.request = request;
        this.multiplying = Reduction.parts(request.kParts());
        this.builder = new StepPlanBuilder(request.placement());
        boolean rounds = request.order() == Reduction.Order.BY_RANK_BF16;
        Kind kind = rounds ? Kind.ROUNDED_SUMS : Kind.SUMS;
        for (int rank = 0; rank < request.ranks(); rank++) {
            long rows = request.rows().totalRows();
            sums.add(builder.buffer(rank, "sums", kind, rows, request.cols()));
        }
    }

    List<StepPlan> plans() {
        List<Chunk> chunks = request.allChunks();
        if (request.order() == Reduction.Order.WHOLE) {
            chunks.forEach(chunk -> multiply(chunk.source(), chunk, multiplying));
            chunks.forEach(this::finish);
        } else {
            for (int rank : multiplying) {
                chunks.forEach(chunk -> multiply(rank, chunk, List.of(rank)));
            }
            for (int rank = 0; rank < request.ranks(); rank++) {
                for (Chunk chunk : chunks) {
                    if (request.all() || chunk.source() == rank) {
                        addAll(rank, chunk);
                    }
                }
            }
        }
        return builder.build();
    }

    private void multiply(int rank, Chunk chunk, List<Integer> parts) {
        for (int part : parts) {
            boolean resume = part != parts.getFirst();
            Part a = request.rows(builder.a(part), chunk);
            Part into = request.rows(sums.get(rank), chunk);
            builder.multiply(rank, 0, a, builder.b(part), into, resume);
        }
    }

    /** Rows are finished once, by their owner. */
    private void finish(Chunk chunk) {
        int owner = chunk.source();
        Part result = request.rowsOfC(builder.c(owner), chunk);
        builder.add(owner, 0, List.of(request.rows(sums.get(owner), chunk)), result);
        for (int distance = 1; request.all() && distance < request.ranks(); distance++) {
            int peer = (owner + distance) % request.ranks();
            builder.copy(owner, 0, result, request.rowsOfC(builder.c(peer), chunk));
        }
    }

    private void addAll(int rank, Chunk chunk) {
        List<Part> addends =
                multiplying.stream().map(r -> request.rows(sums.get(r), chunk)).toList();
        builder.add(rank, 0, addends, request.rowsOfC(builder.c(rank), chunk));
    }
}
