package dev.weft.plan.step;

import java.util.List;

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
                        .filter(w -> w.kind() == Worker.Kind.MOVER && !w.steps().isEmpty())
                        .count();
    }

    /** A number by which ranks on any machines compare plans that they obtained in the same way. */
    public static long digest(List<StepPlan> plans) {
        long digest = 1;
        for (String line : describe(plans)) {
            digest = 31 * digest + line.hashCode();
        }
        return digest;
    }

    /** The plans of all ranks as readable lines. */
    public static List<String> describe(List<StepPlan> plans) {
        return new StepText(plans).lines();
    }
}
