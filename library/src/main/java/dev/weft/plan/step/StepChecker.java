package dev.weft.plan.step;

import dev.weft.plan.step.Content.Elements;
import dev.weft.plan.step.Content.Sums;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Proves that the steps of all ranks together compute what a {@link Placement} asks for. It knows
 * no collective and can check any plans. Pure and thread-safe.
 *
 * <p>Plans that pass have these properties:
 *
 * <ol>
 *   <li>Every step stays within its buffers, which hold what it needs, and reads or writes another
 *       rank's memory only if that is open and shared, or by a copy; words that it waits for are at
 *       its own rank or in shared memory.
 *   <li>Every signal has one writer, and everything finishes, even if every worker takes its steps
 *       strictly one by one.
 *   <li>What a step reads was written before and is not overwritten before it is read; what a step
 *       overwrites was read by all that read it. All this holds in every order of execution: a step
 *       waits for the signals of those that it depends on.
 *   <li>A row of A meets the rows of B that match its columns, and sums of one row go on or are
 *       added with sums of the same row and columns.
 *   <li>Every element of C is written, from sums over every k exactly once, and not written again.
 * </ol>
 */
public final class StepChecker {

    /** Which ranks can reach each other's memory. */
    @FunctionalInterface
    public interface SharedMemory {
        boolean isShared(int rank, int other);
    }

    private final List<StepPlan> plans;
    private final Placement placement;
    private final SharedMemory memory;
    private final StepSchedule schedule;

    /** By rank and buffer. */
    private final List<List<BufferState>> states = new ArrayList<>();

    private StepChecker(List<StepPlan> plans, Placement placement, SharedMemory memory) {
        // A list may write a plan whenever it is asked for it.
        this.plans = List.copyOf(plans);
        this.placement = placement;
        this.memory = memory;
        this.schedule = new StepSchedule(this.plans);
    }

    /**
     * Checks the plans of all ranks, in rank order.
     *
     * @return the orders in which elements of C are summed: a single one if all are summed alike;
     *     none if C has no elements
     * @throws InvalidPlanException if a property does not hold
     */
    public static Set<SumOrder> check(
            List<StepPlan> plans, Placement placement, SharedMemory memory) {
        return orders(plans, placement, memory).stream()
                .map(SummedRows::order)
                .collect(Collectors.toCollection(LinkedHashSet::new));
    }

    /**
     * Rows of C that are summed alike.
     *
     * @param rank the rank that gets them
     * @param firstRow the first of them in the whole C
     */
    public record SummedRows(int rank, long firstRow, long rows, SumOrder order) {}

    /** Checks the plans like {@link #check}, and returns how each row is summed, by rank. */
    public static List<SummedRows> orders(
            List<StepPlan> plans, Placement placement, SharedMemory memory) {
        StepChecker checker = new StepChecker(plans, placement, memory);
        checker.checkBuffers();
        checker.schedule.run(checker::take);
        return checker.ordersOfC();
    }

    private void checkBuffers() {
        if (plans.size() != placement.ranks().size()) {
            throw new InvalidPlanException(
                    0,
                    "plans of %d ranks, expected %d"
                            .formatted(plans.size(), placement.ranks().size()));
        }
        for (int rank = 0; rank < plans.size(); rank++) {
            StepPlan plan = plans.get(rank);
            List<Buffer> given = placement.buffers(rank);
            if (plan.rank() != rank
                    || plan.buffers().size() < given.size()
                    || !IntStream.range(0, given.size())
                            .allMatch(i -> plan.buffers().get(i).isLike(given.get(i)))) {
                throw new InvalidPlanException(
                        rank,
                        "is rank %d with buffers %s, expected %s first"
                                .formatted(plan.rank(), plan.buffers(), given));
            }
            List<BufferState> own = new ArrayList<>();
            for (int b = 0; b < plan.buffers().size(); b++) {
                own.add(new BufferState(plan.buffers().get(b), given(rank, b)));
            }
            states.add(own);
        }
    }

    /** What a buffer holds before the call; null if nothing. */
    private Content given(int rank, int buffer) {
        Placement.OfRank of = placement.ranks().get(rank);
        return switch (buffer) {
            case StepPlan.A -> new Elements(of.a().first(), of.k().first());
            case StepPlan.B -> new Elements(of.b().first(), 0);
            default -> null;
        };
    }

    private void take(int number) {
        int rank = schedule.get(number).rank();
        Step step = schedule.get(number).step();
        for (Signal wait : step.waits()) {
            boolean own = wait.by() == rank || wait.rank() == rank;
            if (!own && !memory.isShared(rank, wait.rank())) {
                throw schedule.fault(
                        number, "waits for a word that is at rank %d".formatted(wait.rank()));
            }
        }
        if (step instanceof Step.Copy copy) {
            copy(number, copy);
        } else if (step instanceof Step.Multiply multiply) {
            multiply(number, multiply);
        } else if (step instanceof Step.Add add) {
            add(number, add);
        }
    }

    private void copy(int number, Step.Copy copy) {
        Part from = copy.from();
        Part to = copy.to();
        int rank = schedule.get(number).rank();
        Buffer.Kind source = checked(number, from).kind();
        Buffer.Kind target = checked(number, to).kind();
        if (!from.hasShapeOf(to)) {
            throw schedule.fault(number, "copies to a part of another shape");
        }
        if (rank != from.rank() && rank != to.rank()) {
            throw schedule.fault(number, "copies between two other ranks");
        }
        boolean fits =
                switch (target) {
                    case ROWS -> buffer(from).holdsRows();
                    case SUMS, ROUNDED_SUMS -> buffer(from).holdsSums();
                    case C -> source == Buffer.Kind.C;
                    case A, B -> false;
                };
        if (!fits) {
            throw schedule.fault(number, "copies %s to %s".formatted(source, target));
        }
        long rows = to.firstRow() - from.firstRow();
        long cols = to.firstCol() - from.firstCol();
        for (Piece piece : read(number, from)) {
            write(number, piece.in(to, rows, cols), piece.content.moved(rows, cols));
        }
    }

    private void multiply(int number, Step.Multiply multiply) {
        Part a = multiply.a();
        Part b = multiply.b();
        Part into = multiply.into();
        boolean readsRows = reached(number, a).holdsRows();
        boolean readsB = reached(number, b).kind() == Buffer.Kind.B;
        boolean intoC = reached(number, into).kind() == Buffer.Kind.C;
        if (!readsRows || !readsB || !intoC && !buffer(into).holdsSums()) {
            throw schedule.fault(number, "multiplies other than rows of A by B into sums or C");
        }
        if (a.cols() != b.rows() || a.rows() != into.rows() || b.cols() != into.cols()) {
            throw schedule.fault(number, "multiplies parts whose shapes do not match");
        }
        if (multiply.resume() && buffer(into).kind() != Buffer.Kind.SUMS) {
            throw schedule.fault(number, "goes on from sums that are not kept in fp32");
        }
        if (into.isEmpty()) {
            return;
        }
        Content rowsOfA = elements(number, a);
        Content rowsOfB = elements(number, b);
        long firstK = rowsOfB.rowShift() + b.firstRow();
        if (rowsOfA.colShift() + a.firstCol() != firstK) {
            throw schedule.fault(
                    number,
                    "column %d of A meets row %d of B"
                            .formatted(rowsOfA.colShift() + a.firstCol(), firstK));
        }
        long rowShift = rowsOfA.rowShift() + a.firstRow() - into.firstRow();
        long colShift = rowsOfB.colShift() + b.firstCol() - into.firstCol();
        if (!multiply.resume()) {
            SumOrder order = SumOrder.over(null, firstK, firstK + a.cols());
            write(number, into, new Sums(order, rowShift, colShift));
            return;
        }
        for (Piece piece : read(number, into)) {
            Sums sums = (Sums) piece.content;
            if (sums.rowShift() != rowShift || sums.colShift() != colShift) {
                throw schedule.fault(number, "goes on from sums of other rows or columns");
            }
            SumOrder order = SumOrder.over(sums.order(), firstK, firstK + a.cols());
            write(number, piece.part, new Sums(order, rowShift, colShift));
        }
    }

    /** What a part of A or B holds; the same for all of it. */
    private Content elements(int number, Part part) {
        Set<Content> found = new LinkedHashSet<>();
        read(number, part).forEach(piece -> found.add(piece.content));
        if (found.size() > 1) {
            throw schedule.fault(
                    number,
                    "%s has rows that do not belong together".formatted(schedule.text(part)));
        }
        return found.isEmpty() ? given(part.rank(), part.buffer()) : found.iterator().next();
    }

    private void add(int number, Step.Add add) {
        Part into = add.into();
        boolean intoC = reached(number, into).kind() == Buffer.Kind.C;
        if (add.addends().isEmpty() || !intoC && !buffer(into).holdsSums()) {
            throw schedule.fault(number, "adds nothing, or not into sums or C");
        }
        // Cut wherever the sums of any addend are cut.
        BufferState result =
                new BufferState(
                        new Buffer("", Buffer.Kind.SUMS, false, into.rows(), into.cols()), null);
        for (Part addend : add.addends()) {
            if (!reached(number, addend).holdsSums() || !addend.hasShapeOf(into)) {
                throw schedule.fault(number, "adds what is no sum, or of another shape");
            }
            for (Piece piece : read(number, addend)) {
                Piece here = piece.moved(-addend.firstRow(), -addend.firstCol());
                result.forEach(
                        here.part,
                        (row, rows, cell) ->
                                cell.write(number, plus(number, cell.content(), here.content)));
            }
        }
        result.forEach(
                new Part(0, 0, 0, into.rows(), 0, into.cols()),
                (row, rows, cell) -> {
                    Part place = into.rows(row, rows).cols(cell.firstCol(), cell.cols());
                    write(number, place, cell.content().moved(into.firstRow(), into.firstCol()));
                });
    }

    private Content plus(int number, Content before, Content next) {
        if (before == null) {
            return next;
        }
        if (before.rowShift() != next.rowShift() || before.colShift() != next.colShift()) {
            throw schedule.fault(number, "adds sums of different rows or columns");
        }
        List<SumOrder> orders = List.of(((Sums) before).order(), ((Sums) next).order());
        return new Sums(SumOrder.added(orders), next.rowShift(), next.colShift());
    }

    /** A rectangle of a buffer with one content. */
    private record Piece(Part part, Content content) {

        Piece moved(long rows, long cols) {
            return new Piece(in(part, rows, cols), content.moved(rows, cols));
        }

        /** The rectangle moved by some rows and columns, in the buffer of {@code other}. */
        Part in(Part other, long rows, long cols) {
            return new Part(
                    other.rank(),
                    other.buffer(),
                    part.firstRow() + rows,
                    part.rows(),
                    part.firstCol() + cols,
                    part.cols());
        }
    }

    private List<Piece> read(int number, Part part) {
        List<Piece> pieces = new ArrayList<>();
        state(part)
                .forEach(
                        part,
                        (row, rows, cell) -> {
                            Part place =
                                    new Part(
                                            part.rank(),
                                            part.buffer(),
                                            row,
                                            rows,
                                            cell.firstCol(),
                                            cell.cols());
                            if (cell.content() == null) {
                                throw schedule.fault(
                                        number,
                                        "reads %s, which nothing has written"
                                                .formatted(schedule.text(place)));
                            }
                            checkWaits(number, cell.writer(), place);
                            if (!buffer(part).isGiven()) {
                                cell.read(number);
                            }
                            pieces.add(new Piece(place, cell.content()));
                        });
        return pieces;
    }

    private void write(int number, Part part, Content content) {
        boolean isC = buffer(part).kind() == Buffer.Kind.C;
        boolean rounds = buffer(part).kind() == Buffer.Kind.ROUNDED_SUMS;
        Content stored = rounds ? ((Sums) content).rounded() : content;
        state(part)
                .forEach(
                        part,
                        (row, rows, cell) -> {
                            if (isC && cell.content() != null && cell.writer() != number) {
                                throw schedule.fault(number, "writes C a second time");
                            }
                            for (int user : cell.usersExcept(number)) {
                                checkWaits(number, user, part);
                            }
                            cell.write(number, stored);
                        });
    }

    private void checkWaits(int number, int before, Part part) {
        if (before != BufferState.BEFORE_ALL
                && before != number
                && !schedule.waitsFor(number, before)) {
            throw schedule.fault(
                    number,
                    "uses %s without waiting for [%s]"
                            .formatted(schedule.text(part), schedule.text(before)));
        }
    }

    /** The buffer of a part that lies within it. */
    private Buffer checked(int number, Part part) {
        boolean exists =
                part.rank() >= 0
                        && part.rank() < plans.size()
                        && part.buffer() >= 0
                        && part.buffer() < plans.get(part.rank()).buffers().size();
        if (!exists) {
            throw schedule.fault(number, "names a buffer that does not exist");
        }
        Buffer buffer = buffer(part);
        boolean within =
                Math.min(part.firstRow(), part.rows()) >= 0
                        && Math.min(part.firstCol(), part.cols()) >= 0
                        && part.rows() <= buffer.rows() - part.firstRow()
                        && part.cols() <= buffer.cols() - part.firstCol();
        if (!within) {
            throw schedule.fault(number, "%s is beyond its buffer".formatted(schedule.text(part)));
        }
        if (part.rank() != schedule.get(number).rank() && !buffer.open()) {
            throw schedule.fault(
                    number, "%s is not open to other ranks".formatted(schedule.text(part)));
        }
        return buffer;
    }

    /** The buffer of a part that the step's rank can reach without copying. */
    private Buffer reached(int number, Part part) {
        Buffer buffer = checked(number, part);
        int rank = schedule.get(number).rank();
        if (part.rank() != rank && !memory.isShared(rank, part.rank())) {
            throw schedule.fault(
                    number, "cannot reach the memory of rank %d".formatted(part.rank()));
        }
        return buffer;
    }

    private Buffer buffer(Part part) {
        return plans.get(part.rank()).buffers().get(part.buffer());
    }

    private BufferState state(Part part) {
        return states.get(part.rank()).get(part.buffer());
    }

    private List<SummedRows> ordersOfC() {
        List<SummedRows> orders = new ArrayList<>();
        for (StepPlan plan : plans) {
            Part all = plan.whole(StepPlan.C);
            state(all)
                    .forEach(
                            all,
                            (row, rows, cell) -> {
                                if (!(cell.content() instanceof Sums sums)) {
                                    throw new InvalidPlanException(
                                            plan.rank(),
                                            "nothing writes rows %d..%d of C"
                                                    .formatted(row, row + rows));
                                }
                                checkWhole(plan.rank(), row, sums);
                                long first = placement.ranks().get(plan.rank()).c().first() + row;
                                orders.add(new SummedRows(plan.rank(), first, rows, sums.order()));
                            });
        }
        return orders;
    }

    private void checkWhole(int rank, long row, Sums sums) {
        long shift = placement.ranks().get(rank).c().first();
        if (sums.rowShift() != shift || sums.colShift() != 0) {
            throw new InvalidPlanException(
                    rank,
                    "row %d of its C is row %d of the whole, expected %d"
                            .formatted(row, row + sums.rowShift(), row + shift));
        }
        if (!sums.order().isWhole(placement.k())) {
            throw new InvalidPlanException(
                    rank,
                    "row %d of its C is summed over %s, expected k 0..%d once"
                            .formatted(row, sums.order().text(), placement.k()));
        }
    }
}
