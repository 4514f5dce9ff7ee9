package dev.weft.plan.step;

import java.util.List;
import java.util.stream.Stream;

/**
 * Everything that one rank does in a call.
 *
 * @param rank this rank's number in its group
 */
public record StepPlan(int rank, List<Buffer> buffers, List<Worker> workers) {

    /** The first three buffers of every rank are what the caller passes and gets. */
    public static final int A = 0;

    public static final int B = 1;
    public static final int C = 2;

    public StepPlan {
        buffers = List.copyOf(buffers);
        workers = List.copyOf(workers);
    }

    /** All of one buffer. */
    public Part whole(int buffer) {
        Buffer whole = buffers.get(buffer);
        return new Part(rank, buffer, 0, whole.rows(), 0, whole.cols());
    }

    /** How many workers have something to move. */
    public int lanes() {
        return (int)
                workers.stream()
                        .filter(w -> w.kind() == Worker.Kind.MOVER)
                        .filter(w -> w.steps().stream().anyMatch(Step.Copy.class::isInstance))
                        .count();
    }

    /** How many workers may move something, even if they have nothing to move. */
    public int movers() {
        return (int)
                workers.stream()
                        .filter(w -> w.kind() == Worker.Kind.MOVER)
                        .filter(w -> w.steps().stream().noneMatch(Step.Join.class::isInstance))
                        .count();
    }

    /** How many workers multiply, each on its own. */
    public int programs() {
        return (int) workers.stream().filter(w -> w.kind() == Worker.Kind.MULTIPLIER).count();
    }

    /** Whether it multiplies rows where other ranks have them. */
    public boolean readsPeersRows() {
        return multiplications().anyMatch(step -> step.a().rank() != rank);
    }

    /** Whether what comes later takes the place of what came before. */
    public boolean reusesBuffers() {
        return buffers.stream().anyMatch(Buffer::single);
    }

    /** Whether nothing is multiplied before all that the rank waits for has come. */
    public boolean multipliesLast() {
        Step first =
                workers.stream()
                        .filter(worker -> worker.kind() == Worker.Kind.MULTIPLIER)
                        .flatMap(worker -> worker.steps().stream())
                        .findFirst()
                        .orElse(null);
        return first instanceof Step.Join join
                && multiplications().allMatch(step -> step.waits().equals(List.of(join.signal())));
    }

    /** All its copies, worker by worker. */
    public Stream<Step.Copy> copies() {
        return steps().filter(Step.Copy.class::isInstance).map(Step.Copy.class::cast);
    }

    /** All its products, worker by worker. */
    public Stream<Step.Multiply> multiplications() {
        return steps().filter(Step.Multiply.class::isInstance).map(Step.Multiply.class::cast);
    }

    private Stream<Step> steps() {
        return workers.stream().flatMap(worker -> worker.steps().stream());
    }

    /** A number by which ranks on any machines compare plans that they obtained in the same way. */
    public static long digest(List<StepPlan> plans) {
        long digest = 1;
        for (StepPlan plan : plans) {
            // Not the hash of a record, which those of its enums make different in every process.
            digest = 31 * digest + plan.buffers.toString().hashCode();
            for (Worker worker : plan.workers) {
                digest = 31 * digest + worker.kind().name().hashCode();
                for (Step step : worker.steps()) {
                    digest = 31 * digest + step.toString().hashCode();
                }
            }
        }
        return digest;
    }

    /** The plans of all ranks as readable lines. */
    public static List<String> describe(List<StepPlan> plans) {
        return describe(plans, Integer.MAX_VALUE);
    }

    /** Like {@link #describe(List)}, but only ranks from the first on, until there are enough. */
    public static List<String> describe(List<StepPlan> plans, int leastLines) {
        return new StepText(plans).lines(leastLines);
    }
}
