package dev.weft.cuda.exec;

import dev.weft.plan.Shards;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Signal;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** What compiling plans for GPUs has in common, whichever route data takes. Pure. */
public final class DeviceSteps {

    private final Map<Signal, List<Signal>> joins = new HashMap<>();

    public DeviceSteps(List<StepPlan> plans) {
        plans.stream()
                .flatMap(plan -> of(plan, Step.Join.class))
                .forEach(join -> joins.put(join.signal(), join.waits()));
    }

    /** All steps of a rank, worker by worker. */
    public static Stream<Step> of(StepPlan plan) {
        return plan.workers().stream().flatMap(worker -> worker.steps().stream());
    }

    /** Those of one kind. */
    public static <T extends Step> Stream<T> of(StepPlan plan, Class<T> kind) {
        return of(plan).filter(kind::isInstance).map(kind::cast);
    }

    /** Whether a join raises the signal. */
    public boolean isJoin(Signal signal) {
        return joins.containsKey(signal);
    }

    /** The signals behind one: a join stands for what it waits for. */
    public Stream<Signal> awaited(Signal signal) {
        List<Signal> joined = joins.get(signal);
        return joined == null ? Stream.of(signal) : joined.stream().flatMap(this::awaited);
    }

    /** The rank whose shard has this row of gathered A, or of C. */
    public static int source(long row, Shards shards) {
        int source = 0;
        while (source < shards.ranks() - 1 && row >= shards.firstRow(source + 1)) {
            source++;
        }
        return source;
    }

    /** Whether the second part continues the first. */
    public static boolean follows(Part part, Part next) {
        return next.rank() == part.rank()
                && next.buffer() == part.buffer()
                && next.firstRow() == part.firstRow() + part.rows();
    }

    /**
     * Rows that are the sum of some parts, in this order; of one part, its copy.
     *
     * @param row the first row in C
     */
    public record RowSum(List<Part> parts, long row, Part into) {

        /** Whether the next rows continue these, wherever they come from and go. */
        public boolean isFollowedBy(RowSum next) {
            return parts.size() == next.parts.size()
                    && row + into.rows() == next.row
                    && follows(into, next.into)
                    && IntStream.range(0, parts.size())
                            .allMatch(i -> follows(parts.get(i), next.parts.get(i)));
        }

        /** Both as one. */
        public RowSum joined(RowSum next) {
            long rows = into.rows() + next.into.rows();
            List<Part> longer = parts.stream().map(part -> part.rows(0, rows)).toList();
            return new RowSum(longer, row, into.rows(0, rows));
        }
    }
}
