package dev.weft.plan.step;

import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.IntStream;

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
        private final List<Buffer> buffers = new ArrayList<>();
        private final List<BufferState> states = new ArrayList<>();

        /** By buffer: the rows that steps use, and whether another rank does. */
        private final List<Long> firstRows = new ArrayList<>();

        private final List<Long> endRows = new ArrayList<>();
        private final List<Boolean> open = new ArrayList<>();
        private final List<List<Integer>> movers = new ArrayList<>();
        private final List<List<Integer>> multipliers = new ArrayList<>();
        private int words;

        /** What every further step of the rank waits for; null if nothing. */
        private Integer join;

        RankDraft(Placement placement, int rank) {
            Placement.OfRank of = placement.ranks().get(rank);
            List<Buffer> given = placement.buffers(rank);
            add(given.get(StepPlan.A), new Content.Elements(of.a().first(), 0));
            add(given.get(StepPlan.B), new Content.Elements(0, 0));
            add(given.get(StepPlan.C), null);
        }

        void add(Buffer buffer, Content content) {
            buffers.add(buffer);
            states.add(new BufferState(buffer, content));
            firstRows.add(Long.MAX_VALUE);
            endRows.add(0L);
            open.add(false);
        }
    }

    private final List<RankDraft> ranks = new ArrayList<>();
    private final List<Step> steps = new ArrayList<>();

    /** By step: the steps that it waits for. */
    private final List<TreeSet<Integer>> waits = new ArrayList<>();

    /** By step: the rank that takes it. */
    private final List<Integer> takers = new ArrayList<>();

    public StepPlanBuilder(Placement placement) {
        for (int rank = 0; rank < placement.ranks().size(); rank++) {
            ranks.add(new RankDraft(placement, rank));
        }
    }

    /** Adds a buffer. Rows at its beginning and end that no step uses take no memory. */
    public Part buffer(int rank, String name, Buffer.Kind kind, long rows, long cols) {
        RankDraft draft = ranks.get(rank);
        draft.add(new Buffer(name, kind, true, rows, cols), null);
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
        long row = row(from);
        int step = add(rank, new Step.Copy(from, to, row, List.of(), null));
        reads(step, from);
        writes(step, to, row);
        if (from.rank() != to.rank()) {
            // Messages, too, are sent from memory that a transport knows.
            ranks.get(from.rank()).open.set(from.buffer(), true);
            ranks.get(to.rank()).open.set(to.buffer(), true);
        }
        worker(ranks.get(rank).movers, lane).add(step);
    }

    /** Multiplies, and continues the sums of {@code into} if {@code resume}. */
    public void multiply(int rank, int program, Part a, Part b, Part into, boolean resume) {
        long row = row(a);
        int step = add(rank, new Step.Multiply(a, b, into, resume, 0, row, List.of(), null));
        reads(step, a);
        reads(step, b);
        if (resume) {
            reads(step, into);
        }
        writes(step, into, row);
        worker(ranks.get(rank).multipliers, program).add(step);
    }

    /** Adds in this order. One addend into C only finishes its sums. */
    public void add(int rank, int program, List<Part> addends, Part into) {
        long row = row(addends.getFirst());
        int step = add(rank, new Step.Add(addends, into, row, List.of(), null));
        addends.forEach(addend -> reads(step, addend));
        writes(step, into, row);
        worker(ranks.get(rank).multipliers, program).add(step);
    }

    /** What the rank does after this waits for all that it does before, if it needs any of that. */
    public void join(int rank) {
        List<Integer> before =
                IntStream.range(0, steps.size())
                        .filter(step -> takers.get(step) == rank)
                        .boxed()
                        .toList();
        int step = add(rank, new Step.Join(List.of(), null));
        waits.get(step).addAll(before);
        worker(ranks.get(rank).multipliers, 0).add(step);
        ranks.get(rank).join = step;
    }

    /** The plans of all ranks. */
    public List<StepPlan> build() {
        IntStream.range(0, steps.size()).forEach(this::keepNeeded);
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
            plans.add(new StepPlan(rank, buffers(draft), workers));
        }
        return plans;
    }

    private List<Step> finished(List<Integer> numbers, Signal[] signals) {
        return numbers.stream()
                .map(n -> cropped(steps.get(n)).with(awaited(n, signals), signals[n]))
                .toList();
    }

    private List<Buffer> buffers(RankDraft draft) {
        List<Buffer> buffers = new ArrayList<>();
        for (int i = 0; i < draft.buffers.size(); i++) {
            Buffer buffer = draft.buffers.get(i);
            long used = Math.max(0, draft.endRows.get(i) - draft.firstRows.get(i));
            buffers.add(buffer.with(draft.open.get(i), i <= StepPlan.C ? buffer.rows() : used));
        }
        return buffers;
    }

    private Step cropped(Step step) {
        if (step instanceof Step.Copy copy) {
            return new Step.Copy(
                    cropped(copy.from()), cropped(copy.to()), copy.firstRow(), List.of(), null);
        }
        if (step instanceof Step.Multiply multiply) {
            return new Step.Multiply(
                    cropped(multiply.a()),
                    cropped(multiply.b()),
                    cropped(multiply.into()),
                    multiply.resume(),
                    multiply.leastRows(),
                    multiply.firstRow(),
                    List.of(),
                    null);
        }
        if (step instanceof Step.Add add) {
            List<Part> addends = add.addends().stream().map(this::cropped).toList();
            return new Step.Add(addends, cropped(add.into()), add.firstRow(), List.of(), null);
        }
        return step;
    }

    private Part cropped(Part part) {
        long unused = ranks.get(part.rank()).firstRows.get(part.buffer());
        return part.buffer() <= StepPlan.C || part.isEmpty() ? part : part.moved(-unused);
    }

    private List<Signal> awaited(int step, Signal[] signals) {
        return waits.get(step).stream().map(before -> signals[before]).toList();
    }

    /**
     * A join stands for all that its rank has done before; a step that needs none of it goes on.
     */
    private void keepNeeded(int step) {
        TreeSet<Integer> before = waits.get(step);
        Integer join =
                before.descendingSet().stream()
                        .filter(b -> isJoin(b) && takers.get(b).equals(takers.get(step)))
                        .findFirst()
                        .orElse(-1);
        boolean covers = before.removeIf(b -> b < join && takers.get(b).equals(takers.get(join)));
        if (!covers && steps.get(step).getClass() != Step.Join.class) {
            before.remove(join);
        }
    }

    private boolean isJoin(int step) {
        return steps.get(step) instanceof Step.Join;
    }

    /**
     * A word for each step that another one waits for: where a copy arrives, at the only rank that
     * waits, or else at the rank that raises it.
     */
    private Signal[] signals() {
        int[] homes = takers.stream().mapToInt(rank -> rank).toArray();
        List<TreeSet<Integer>> waiting = new ArrayList<>();
        steps.forEach(step -> waiting.add(new TreeSet<>()));
        for (int n = 0; n < steps.size(); n++) {
            for (int step : waits.get(n)) {
                waiting.get(step).add(takers.get(n));
            }
        }
        for (int n = 0; n < homes.length; n++) {
            if (steps.get(n) instanceof Step.Copy copy) {
                homes[n] = copy.to().rank();
            } else if (waiting.get(n).size() == 1) {
                homes[n] = waiting.get(n).getFirst();
            }
        }
        Signal[] signals = new Signal[steps.size()];
        for (int n = 0; n < steps.size(); n++) {
            for (int step : waits.get(n)) {
                if (signals[step] == null) {
                    int home = homes[step];
                    signals[step] = new Signal(takers.get(step), home, ranks.get(home).words++, 1);
                }
            }
        }
        return signals;
    }

    private int add(int rank, Step step) {
        steps.add(step);
        takers.add(rank);
        waits.add(new TreeSet<>());
        Integer join = ranks.get(rank).join;
        if (join != null) {
            waits.getLast().add(join);
        }
        return steps.size() - 1;
    }

    /** The row of the whole A, or C, that a part begins with. */
    private long row(Part part) {
        long[] first = {0};
        if (!part.isEmpty()) {
            state(part)
                    .forEach(
                            part.rows(0, 1).cols(0, 1),
                            (row, rows, cell) ->
                                    first[0] =
                                            cell.content() == null
                                                    ? row
                                                    : row + cell.content().rowShift());
        }
        return first[0];
    }

    private void uses(int step, Part part) {
        RankDraft draft = ranks.get(part.rank());
        if (part.rank() != takers.get(step)) {
            draft.open.set(part.buffer(), true);
        }
        if (!part.isEmpty()) {
            draft.firstRows.set(
                    part.buffer(), Math.min(draft.firstRows.get(part.buffer()), part.firstRow()));
            draft.endRows.set(
                    part.buffer(),
                    Math.max(draft.endRows.get(part.buffer()), part.firstRow() + part.rows()));
        }
    }

    private void reads(int step, Part part) {
        uses(step, part);
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

    /** {@code row} is the row of the whole A, or C, that is then at the part's beginning. */
    private void writes(int step, Part part, long row) {
        uses(step, part);
        Content content = new Content.Elements(row - part.firstRow(), 0);
        state(part)
                .forEach(
                        part,
                        (first, rows, cell) -> {
                            waits.get(step).addAll(cell.usersExcept(step));
                            cell.write(step, content);
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
