package dev.weft.plan;

import dev.weft.plan.step.Buffer.Kind;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.StepPlanBuilder;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Writes reductions of ranks that read each other's memory: sums are read where they are, and
 * finished rows are copied.
 */
final class LinkedReduceSteps {

    private final Reduction.Order order;
    private final Chunks chunks;
    private final Shards rows;
    private final boolean all;
    private final List<Integer> multiplying;
    private final StepPlanBuilder builder;

    /** By rank: sums of the rows that it multiplies. */
    private final List<Part> sums = new ArrayList<>();

    /**
     * @param chunks the chunks of C
     * @param inner how K is spread over the ranks
     */
    LinkedReduceSteps(Reduction.Order order, Chunks chunks, Shards inner, boolean all) {
        this.order = order;
        this.chunks = chunks;
        this.rows = chunks.shards();
        this.all = all;
        this.multiplying = Reduction.parts(inner);
        this.builder = new StepPlanBuilder(Placements.reduce(rows, inner, chunks.cols(), all));
        Kind kind = order == Reduction.Order.BY_RANK_BF16 ? Kind.ROUNDED_SUMS : Kind.SUMS;
        for (int rank = 0; rank < rows.ranks(); rank++) {
            sums.add(builder.buffer(rank, "sums", kind, rows.totalRows(), chunks.cols()));
        }
    }

    List<StepPlan> plans() {
        if (order == Reduction.Order.WHOLE) {
            all().forEach(chunk -> multiply(chunk.source(), chunk, multiplying));
            all().forEach(this::finish);
        } else {
            multiplying.forEach(
                    rank -> all().forEach(chunk -> multiply(rank, chunk, List.of(rank))));
            for (int rank = 0; rank < rows.ranks(); rank++) {
                for (Chunk chunk : all()) {
                    if (all || chunk.source() == rank) {
                        addAll(rank, chunk);
                    }
                }
            }
        }
        return builder.build();
    }

    private List<Chunk> all() {
        return IntStream.range(0, rows.ranks())
                .boxed()
                .flatMap(
                        owner ->
                                IntStream.range(0, chunks.count(owner))
                                        .mapToObj(c -> chunks.chunk(owner, c)))
                .toList();
    }

    private void multiply(int rank, Chunk chunk, List<Integer> parts) {
        for (int part : parts) {
            boolean resume = part != parts.getFirst();
            Part into = of(sums.get(rank), chunk);
            builder.multiply(rank, 0, of(builder.a(part), chunk), builder.b(part), into, resume);
        }
    }

    /** Rows are finished once, by their owner. */
    private void finish(Chunk chunk) {
        int owner = chunk.source();
        Part result = ofC(owner, chunk);
        builder.add(owner, 0, List.of(of(sums.get(owner), chunk)), result);
        for (int distance = 1; all && distance < rows.ranks(); distance++) {
            int peer = (owner + distance) % rows.ranks();
            builder.copy(owner, 0, result, ofC(peer, chunk));
        }
    }

    private void addAll(int rank, Chunk chunk) {
        List<Part> addends = multiplying.stream().map(r -> of(sums.get(r), chunk)).toList();
        builder.add(rank, 0, addends, ofC(rank, chunk));
    }

    private Part of(Part buffer, Chunk chunk) {
        return buffer.rows(rows.firstRow(chunk.source()) + chunk.firstRow(), chunk.rows());
    }

    private Part ofC(int rank, Chunk chunk) {
        return all
                ? of(builder.c(rank), chunk)
                : builder.c(rank).rows(chunk.firstRow(), chunk.rows());
    }
}
