package dev.weft.plan;

import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.plan.step.Worker;
import java.util.ArrayList;
import java.util.List;

/** One rank's steps of a gather, in the words of shards and chunks. */
public record GatherView(StepPlan plan, Chunks chunks) {

    public record Lane(int index, List<Move> moves) {}

    public record Move(
            int from, int to, int source, int chunk, boolean pulled, int buffer, int waits) {}

    public record Block(int source, long firstRow, long rows, int program) {}

    public static List<GatherView> of(List<StepPlan> plans, Chunks chunks) {
        return plans.stream().map(plan -> new GatherView(plan, chunks)).toList();
    }

    public int rank() {
        return plan.rank();
    }

    public int ranks() {
        return chunks.shards().ranks();
    }

    public List<Lane> lanes() {
        List<Lane> lanes = new ArrayList<>();
        for (Worker worker : plan.workers()) {
            boolean joins = worker.steps().stream().anyMatch(Step.Join.class::isInstance);
            if (worker.kind() == Worker.Kind.MOVER && !joins) {
                lanes.add(
                        new Lane(
                                lanes.size(),
                                worker.steps().stream().map(s -> move((Step.Copy) s)).toList()));
            }
        }
        return lanes;
    }

    private Move move(Step.Copy copy) {
        int source = source(copy.firstRow());
        long row = copy.firstRow() - chunks.shards().firstRow(source);
        int above = Math.toIntExact(row / chunks.chunkRows(source)) * chunks.colChunks();
        return new Move(
                copy.from().rank(),
                copy.to().rank(),
                source,
                above + Math.toIntExact(copy.from().firstCol() / chunks.chunkCols()),
                copy.to().rank() == plan.rank(),
                copy.to().buffer() - GatherRequest.GATHERED,
                copy.waits().size());
    }

    public List<Block> consumption() {
        List<Block> blocks = new ArrayList<>();
        int program = 0;
        for (Worker worker : plan.workers()) {
            if (worker.kind() == Worker.Kind.MULTIPLIER) {
                for (Step step : worker.steps()) {
                    if (step instanceof Step.Multiply multiply) {
                        int source = source(multiply.firstRow());
                        long row = multiply.firstRow() - chunks.shards().firstRow(source);
                        blocks.add(new Block(source, row, multiply.a().rows(), program));
                    }
                }
                program++;
            }
        }
        return blocks;
    }

    private int source(long row) {
        int source = 0;
        Shards shards = chunks.shards();
        while (shards.firstRow(source) + shards.rows(source) <= row) {
            source++;
        }
        return source;
    }
}
