package dev.weft.plan.step;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;

/**
 * Writes plans in steps. Steps are given in an order in which one worker could take all of them;
 * the builder works out what each has to wait for, so that the plans compute the same however their
 * steps overlap. Used by one thread.
 *
 * {@snippet :
 * // Every rank multiplies its rows of A by its B, alone.
 * List<StepPlan> plans(Placement placement) {
 *     StepPlanBuilder builder = new StepPlanBuilder(placement);
 *     for (int rank = 0; rank < placement.ranks().size(); rank++) {
 *         builder.multiply(rank, 0, builder.a(rank), builder.b(rank), builder.c(rank), false);
 *     }
 *     return builder.build();
 * }
 * }
 */
public final class StepPlanBuilder {

    private static final class RankDraft {
        private final List<Buffer> buffers;
        private final List<BufferState> states = new ArrayList<>();
        private final List<List<Integer>> movers = new ArrayList<>();
        private final List<List<Integer>> multipliers = new ArrayList<>();
        private int words;

        RankDraft(List<Buffer> buffers) {
            this.buffers = buffers;
            buffers.forEach(buffer -> states.add(new BufferState(buffer, null)));
        }
    }

    private final List<RankDraft> ranks = new ArrayList<>();
    private final List<Step> steps = new ArrayList<>();

    /** By step: the steps that it waits for. */
    private final List<TreeSet<Integer>> waits = new ArrayList<>();

    /** By step: where its word is if anybody waits for it. */
    private final List<Integer> homes = new ArrayList<>();

    public StepPlanBuilder(Placement placement) {
        for (int rank = 0; rank < placement.ranks().size(); rank++) {
            ranks.add(new RankDraft(placement.buffers(rank)));
        }
    }

    /** Adds a buffer that other ranks may reach. */
    public Part buffer(int rank, String name, Buffer.Kind kind, long rows, long cols) {
        RankDraft draft = ranks.get(rank);
        Buffer buffer = new Buffer(name, kind, true, rows, cols);
        draft.buffers.add(buffer);
        draft.states.add(new BufferState(buffer, null));
        return whole(rank, draft.buffers.size() - 1);
    }

    /** All that a rank has of A. */
    public Part a(int rank) {
        return whole(rank, StepPlan.A);
    }

    /** All that a rank has of B. */
    public Part b(int rank) {
        return whole(rank, StepPlan.B);
    }

    /** All that a rank gets of C. */
    public Part c(int rank) {
        return whole(rank, StepPlan.C);
    }

    private Part whole(int rank, int index) {
        Buffer buffer = ranks.get(rank).buffers.get(index);
        return new Part(rank, index, 0, buffer.rows(), 0, buffer.cols());
    }

    /** Lane {@code lane} of {@code rank}, at either end, copies. */
    public void copy(int rank, int lane, Part from, Part to) {
        int step = add(new Step.Copy(from, to, List.of(), null), to.rank());
        reads(step, from);
        writes(step, to);
        worker(ranks.get(rank).movers, lane).add(step);
    }

    /** Multiplies, and continues the sums of {@code into} if {@code resume}. */
    public void multiply(int rank, int program, Part a, Part b, Part into, boolean resume) {
        int step = add(new Step.Multiply(a, b, into, resume, 0, List.of(), null), rank);
        reads(step, a);
        reads(step, b);
        if (resume) {
            reads(step, into);
        }
        writes(step, into);
        worker(ranks.get(rank).multipliers, program).add(step);
    }

    /** Adds in this order. One addend into C only finishes its sums. */
    public void add(int rank, int program, List<Part> addends, Part into) {
        int step = add(new Step.Add(addends, into, List.of(), null), rank);
        addends.forEach(addend -> reads(step, addend));
        writes(step, into);
        worker(ranks.get(rank).multipliers, program).add(step);
    }

    /** The plans of all ranks. */
    public List<StepPlan> build() {
        Signal[] signals = signals();
        List<StepPlan> plans = new ArrayList<>();
        for (int rank = 0; rank < ranks.size(); rank++) {
            RankDraft draft = ranks.get(rank);
            List<Worker> workers = new ArrayList<>();
            for (List<Integer> lane : draft.movers) {
                workers.add(new Worker(Worker.Kind.MOVER, finished(lane, signals)));
            }
            for (List<Integer> program : draft.multipliers) {
                workers.add(new Worker(Worker.Kind.MULTIPLIER, finished(program, signals)));
            }
            plans.add(new StepPlan(rank, draft.buffers, workers));
        }
        return plans;
    }

    private List<Step> finished(List<Integer> numbers, Signal[] signals) {
        return numbers.stream()
                .map(n -> steps.get(n).with(awaited(n, signals), signals[n]))
                .toList();
    }

    private List<Signal> awaited(int step, Signal[] signals) {
        return waits.get(step).stream().map(before -> signals[before]).toList();
    }

    /** A word for each step that another one waits for. */
    private Signal[] signals() {
        Signal[] signals = new Signal[steps.size()];
        for (TreeSet<Integer> before : waits) {
            for (int step : before) {
                if (signals[step] == null) {
                    int home = homes.get(step);
                    signals[step] = new Signal(home, ranks.get(home).words++, 1);
                }
            }
        }
        return signals;
    }

    private int add(Step step, int home) {
        steps.add(step);
        waits.add(new TreeSet<>());
        homes.add(home);
        return steps.size() - 1;
    }

    private void reads(int step, Part part) {
        if (ranks.get(part.rank()).buffers.get(part.buffer()).isGiven()) {
            return;
        }
        state(part)
                .forEach(
                        part,
                        (row, rows, cell) -> {
                            if (cell.writer() != BufferState.BEFORE_ALL) {
                                waits.get(step).add(cell.writer());
                            }
                            cell.read(step);
                        });
    }

    private void writes(int step, Part part) {
        state(part)
                .forEach(
                        part,
                        (row, rows, cell) -> {
                            waits.get(step).addAll(cell.usersExcept(step));
                            cell.write(step, null);
                        });
    }

    private BufferState state(Part part) {
        return ranks.get(part.rank()).states.get(part.buffer());
    }

    private static List<Integer> worker(List<List<Integer>> workers, int index) {
        while (workers.size() <= index) {
            workers.add(new ArrayList<>());
        }
        return workers.get(index);
    }
}
