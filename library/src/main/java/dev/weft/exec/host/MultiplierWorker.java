package dev.weft.exec.host;

import dev.weft.gemm.Gemm;
import dev.weft.gemm.PackedB;
import dev.weft.gemm.Scratch;
import dev.weft.plan.step.Part;
import dev.weft.plan.step.Step;
import dev.weft.plan.step.StepPlan;
import dev.weft.tensor.Matrix;
import dev.weft.trace.Timeline;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * One of the threads that share a program. Each takes the next free task or, if its columns or rows
 * are cut into parts, the next free part of one, and waits for what it needs. Sums are added as
 * soon as what they need has come, between tasks, while it is in a near cache; those that are left
 * are waited for at the end.
 *
 * <p>No deadlock: a thread waits for a step only once everything before it in its program is done
 * or in progress, and the plan finishes if steps are taken strictly in order.
 */
final class MultiplierWorker extends Worker {

    /** How many additions that cannot start yet are looked at before each task. */
    private static final int LOOKAHEAD = 4;

    /** Rows that are added up before they are finished: they stay in a near cache. */
    private static final long ADDED_ROWS = 8;

    /** What the threads of one program share. */
    static final class Shared {

        final RankSteps.Program program;
        final int parts;

        /** The next piece to take: tasks in order, each in its parts. */
        final AtomicInteger nextPiece = new AtomicInteger();

        /** By task: how many parts are still to be multiplied. */
        final AtomicIntegerArray partsLeft;

        /** By addition: 1 if a thread has taken it. */
        final AtomicIntegerArray taken;

        /** All additions before this one are taken; it may lag behind. */
        volatile int firstOpen;

        Shared(RankSteps.Program program, int parts) {
            this.program = program;
            this.parts = parts;
            this.partsLeft = new AtomicIntegerArray(program.tasks().size());
            this.taken = new AtomicIntegerArray(program.additions().size());
        }

        void begin() {
            nextPiece.set(0);
            firstOpen = 0;
            for (int i = 0; i < partsLeft.length(); i++) {
                partsLeft.set(i, parts);
            }
            for (int i = 0; i < taken.length(); i++) {
                taken.set(i, 0);
            }
        }
    }

    private final int index;
    private final HostCall call;
    private final Shared shared;
    private final Products products;
    private final Gemm gemm;

    /** That of the team which runs the call. */
    private Scratch scratch;

    /** Null if products are only rounded. */
    private final FinishedRows finished;

    /** Null if rows are in no groups. */
    private final GroupedRows grouped;

    /** Null if A has no scales. */
    private final WidenedRows widened;

    /** Null if nothing is added. */
    private final RowSums sums;

    /** The columns of each B in rows that were added up; null if nothing is added. */
    private final Matrix[] added;

    private final PreparedEpilogue.Scratch epilogue;
    private final Matrix[] addends;
    private final long[] addendRows;

    MultiplierWorker(
            int index, String name, HostCall call, Shared shared, Products products, Arena arena) {
        super(new SpanLog(name, spans(shared)));
        this.index = index;
        this.call = call;
        this.shared = shared;
        this.products = products;
        if (products.partsAreRows()
                && shared.program.tasks().stream()
                        .flatMap(task -> task.products().stream())
                        .anyMatch(product -> product.leastRows() > 0)) {
            // Each worker would see others arrive.
            throw new IllegalArgumentException("parts of rows of a product that begins early");
        }
        this.gemm = products.gemm();
        long mostRows =
                shared.program.tasks().stream()
                        .flatMap(task -> task.products().stream())
                        .mapToLong(product -> product.a().rows())
                        .max()
                        .orElse(0);
        this.finished =
                !products.finishes() || products.unfinished() != null || !multipliesIntoC(shared)
                        ? null
                        : new FinishedRows(
                                products.epilogue(),
                                gemm,
                                products.results(),
                                products.grouped() != null,
                                mostRows,
                                arena);
        this.grouped =
                products.grouped() == null
                        ? null
                        : new GroupedRows(
                                call.fabric, products, call.memory.aType(), mostRows, arena);
        this.widened =
                products.scaling() == null
                        ? null
                        : new WidenedRows(
                                products.scaling(),
                                Math.clamp(mostRows, 1, gemm.blockRows()),
                                products.deepest(),
                                arena);
        List<RankSteps.Addition> additions = shared.program.additions();
        int most = additions.stream().mapToInt(a -> a.step().addends().size()).max().orElse(0);
        this.sums = most == 0 ? null : new RowSums(ADDED_ROWS, products.totalColumns(), arena);
        this.added = most == 0 ? null : products.columnsOf(sums.sums());
        this.epilogue = products.epilogue().new Scratch();
        this.addends = new Matrix[most];
        this.addendRows = new long[most];
    }

    private static boolean multipliesIntoC(Shared shared) {
        return shared.program.tasks().stream()
                .flatMap(task -> task.products().stream())
                .anyMatch(product -> product.into().buffer() == StepPlan.C);
    }

    /** For each piece a product and a wait per step, or a wait and a product per need. */
    private static int spans(Shared shared) {
        int spans = 1;
        for (RankSteps.Task task : shared.program.tasks()) {
            spans += 2;
            for (List<Need> needs : task.needs()) {
                spans += 2 + 2 * needs.size();
            }
        }
        return spans * shared.parts + 2 * shared.program.additions().size();
    }

    int index() {
        return index;
    }

    /** Uses this team's working memory from now on. */
    void prepare(Team team) {
        scratch = team.scratch(index, gemm, products.deepest(), products.widest());
    }

    @Override
    public void run() {
        log.clear();
        boolean alone = call.view == View.COMPUTE_ONLY;
        if (!alone && !shared.program.first().isEmpty()) {
            call.await(shared.program.first(), log, call.rank(), 0, 0);
            if (index == 0) {
                call.gatheredNs = System.nanoTime();
            }
        }
        int pieces = shared.program.tasks().size() * shared.parts;
        for (int i = next(); i < pieces; i = next()) {
            while (!alone && addIfReady()) {
                // Rows with complete sums are finished while they are in a near cache.
            }
            int task = i / shared.parts;
            take(shared.program.tasks().get(task), i % shared.parts);
            // The last one acquires what the others have released.
            if (shared.partsLeft.decrementAndGet(task) == 0) {
                finish(shared.program.tasks().get(task));
                if (!alone) {
                    call.end(shared.program.tasks().get(task).done());
                }
            }
        }
        if (!alone) {
            addBefore(shared.program.additions().size());
        }
        if (index == 0 && call.view == View.COMM_ONLY) {
            call.gatheredNs = System.nanoTime();
        }
    }

    private int next() {
        return shared.nextPiece.getAndIncrement();
    }

    private void take(RankSteps.Task task, int part) {
        if (task.copy() != null) {
            if (part == 0) {
                copy(task);
            }
            return;
        }
        for (int i = 0; i < task.products().size(); i++) {
            Step.Multiply product = task.products().get(i);
            List<Need> needs = task.needs().get(i);
            boolean waits = call.view != View.COMPUTE_ONLY && !needs.isEmpty();
            if (waits && product.leastRows() > 0 && call.view != View.COMM_ONLY) {
                multiplyAsItArrives(product, needs, part);
                continue;
            }
            if (waits) {
                if (multipliesAhead(product, needs)) {
                    grouped.multiplyAhead(
                            call.matrix(product.a().rank(), product.a().buffer()),
                            call.rows.at(product.firstRow()),
                            call.count(product.firstRow(), product.a().rows()),
                            part,
                            scratch);
                }
                await(task, needs, product.firstRow(), product.a().rows());
                noteGathered();
            }
            if (call.view != View.COMM_ONLY && products.count() > 0) {
                multiply(product, part);
            }
        }
    }

    /** Products of groups are added to sums, and only that needs the sums. */
    private boolean multipliesAhead(Step.Multiply product, List<Need> needs) {
        return products.grouped() != null
                && products.grouped().added()
                && call.view != View.COMM_ONLY
                && product.a().rank() == call.rank()
                && !call.haveReached(needs);
    }

    /** Only the first product's wait counts, and only if all products wait for the same. */
    private void noteGathered() {
        if (index == 0 && call.gatheredNs == 0) {
            call.gatheredNs = System.nanoTime();
        }
    }

    private void await(RankSteps.Task task, List<Need> needs, long row, long rows) {
        if (shared.firstOpen < task.additions() && !call.haveReached(needs)) {
            addBefore(task.additions());
        }
        int source = call.names.source(row);
        call.await(needs, log, source, call.names.rowOfShard(source, row), rows);
    }

    /** Leaves rows where the caller, or a later step, reads them. */
    private void copy(RankSteps.Task task) {
        Step.Copy step = task.copy();
        if (call.view == View.COMPUTE_ONLY) {
            return;
        }
        await(task, task.needs().getFirst(), step.firstRow(), step.from().rows());
        if (call.view == View.PIPELINED) {
            long all = step.from().rows();
            for (long done = 0; done < all; ) {
                long row = step.firstRow() + done;
                long span = call.ofOneShard(row, all - done);
                copy(step, done, call.count(row, span));
                done += span;
            }
        }
    }

    private void copy(Step.Copy step, long first, long rows) {
        if (rows == 0) {
            return;
        }
        long start = System.nanoTime();
        Part from = step.from();
        Part to = step.to();
        long row = step.firstRow() + first;
        call.matrix(to.rank(), to.buffer())
                .copyBlock(
                        call.matrix(from.rank(), from.buffer()),
                        from.firstRow() + first + shift(from, row),
                        from.firstCol(),
                        to.firstRow() + first + shift(to, row),
                        to.firstCol(),
                        rows,
                        from.cols());
        log(Timeline.Kind.COMPUTE, row, rows, from.rank(), start);
    }

    /** How far a row is from where the plan has it. */
    private long shift(Part part, long row) {
        return call.shiftInMatrix(part.rank(), part.buffer(), row);
    }

    /** All of a product's rows, shard by shard. */
    private void multiply(Step.Multiply product, int part) {
        long all = product.a().rows();
        for (long done = 0; done < all; ) {
            long row = product.firstRow() + done;
            long span = call.ofOneShard(row, all - done);
            multiply(product, done, call.count(row, span), part);
            done += span;
        }
    }

    /** Multiplies the rows that have arrived, if the rest is late. */
    private void multiplyAsItArrives(Step.Multiply product, List<Need> needs, int part) {
        long all = call.count(product.firstRow(), product.a().rows());
        long done = 0;
        int source = call.names.source(product.firstRow());
        for (int i = 0; i < needs.size(); i++) {
            if (!call.hasReached(needs.get(i))) {
                long start = System.nanoTime();
                call.await(needs.get(i));
                long row = call.names.rowOfShard(source, product.firstRow() + done);
                int writer = needs.get(i).what().writer();
                log.add(Timeline.Kind.WAIT, source, writer, row, all - done, start);
            }
            boolean last = i + 1 == needs.size();
            long quantum = gemm.rowQuantum();
            long complete = call.names.completeRows(product.firstRow(), all, i + 1);
            long ready = last ? all - done : (complete - done) / quantum * quantum;
            if (last || ready >= product.leastRows() && !call.hasReached(needs.get(i + 1))) {
                multiply(product, done, ready, part);
                done += ready;
            }
        }
    }

    /** One part of some rows of a product, which are of one shard. */
    private void multiply(Step.Multiply product, long first, long rows, int part) {
        if (products.partsAreRows()) {
            long from = firstRow(part, rows);
            multiplyRows(product, first + from, firstRow(part + 1, rows) - from, 0);
        } else {
            multiplyRows(product, first, rows, part);
        }
    }

    /** Where a part of so many rows begins. */
    private long firstRow(int part, long rows) {
        long quantum = gemm.rowQuantum();
        return Math.min(rows, Math.ceilDiv(rows, quantum) * part / shared.parts * quantum);
    }

    /** Some rows in one part of the columns. */
    private void multiplyRows(Step.Multiply product, long first, long rows, int part) {
        if (rows == 0) {
            return;
        }
        long start = System.nanoTime();
        Part a = product.a();
        Matrix from = call.matrix(a.rank(), a.buffer());
        long planned = product.firstRow() + first;
        long row = a.firstRow() + first + shift(a, planned);
        long into = product.into().firstRow() + first + shift(product.into(), planned);
        if (grouped != null) {
            multiplyGroups(product, from, row, planned, rows, into, part);
        } else if (widened == null) {
            multiply(product, from, row, rows, into, part);
        } else {
            for (long done = 0; done < rows; done += widened.mostRows()) {
                long count = Math.min(widened.mostRows(), rows - done);
                Matrix wide = widened.of(from, row + done, count);
                multiply(product, wide, 0, count, into + done, part);
            }
        }
        log(Timeline.Kind.COMPUTE, product.firstRow() + first, rows, product.b().rank(), start);
    }

    /** Rows of the call by groups, or the other way round. */
    private void multiplyGroups(
            Step.Multiply product,
            Matrix a,
            long row,
            long planned,
            long rows,
            long into,
            int part) {
        long callRow = call.rows.at(planned);
        if (products.grouped().added()) {
            Matrix sums = products.columns(product.into().buffer(), 0, call.number);
            grouped.combine(a, sums, into, callRow, rows, product.resume(), part, scratch);
        } else {
            grouped.split(
                    a, widened, row, callRow, rows, part, call.operatorCall, finished, scratch);
        }
    }

    private void multiply(
            Step.Multiply product, Matrix a, long row, long rows, long intoRow, int part) {
        boolean intoC = product.into().buffer() == StepPlan.C;
        int of = product.b().rank();
        Matrix[] unfinished = intoC ? products.unfinished() : null;
        int count = intoC && unfinished == null ? products.results().size() : products.count();
        for (int p = 0; p < count; p++) {
            long firstCol = products.firstCol(p, part);
            long cols = products.firstCol(p, part + 1) - firstCol;
            if (intoC && finished != null) {
                Matrix c = products.results().get(p).c(call.operatorCall);
                finished.multiply(p, a, row, rows, firstCol, cols, c, intoRow, scratch);
            } else {
                PackedB b = products.b(of, p);
                Matrix c =
                        unfinished != null
                                ? unfinished[p]
                                : intoC
                                        ? products.results().get(p).c(call.operatorCall)
                                        : products.columns(product.into().buffer(), p, call.number);
                gemm.multiply(
                        a, row, rows, b, firstCol, cols, product.resume(), c, intoRow, scratch);
            }
            call.fabric.worked();
        }
    }

    /** Finishes rows of a task whose columns several threads have multiplied. */
    private void finish(RankSteps.Task task) {
        if (products.unfinished() == null || task.copy() != null || call.view == View.COMM_ONLY) {
            return;
        }
        for (Step.Multiply product : task.products()) {
            if (product.into().buffer() != StepPlan.C) {
                continue;
            }
            long all = product.a().rows();
            for (long done = 0; done < all; ) {
                long planned = product.firstRow() + done;
                long span = call.ofOneShard(planned, all - done);
                long row = product.into().firstRow() + done + shift(product.into(), planned);
                finishRows(products.unfinished(), row, call.count(planned, span), row);
                done += span;
            }
        }
    }

    /** Adds the next sums of which all have come; returns whether there may be more. */
    private boolean addIfReady() {
        int open = 0;
        for (int i = firstOpen(); i < shared.taken.length() && open < LOOKAHEAD; i++) {
            if (shared.taken.get(i) == 0) {
                open++;
                RankSteps.Addition addition = shared.program.additions().get(i);
                if (call.haveReached(addition.needs()) && shared.taken.compareAndSet(i, 0, 1)) {
                    add(addition);
                    return true;
                }
            }
        }
        return false;
    }

    /** The first addition that may not be taken yet. */
    private int firstOpen() {
        int first = shared.firstOpen;
        while (first < shared.taken.length() && shared.taken.get(first) != 0) {
            first++;
        }
        // Threads may write older values, too: a lower one only costs a few looks.
        shared.firstOpen = first;
        return first;
    }

    /** Takes the additions before number {@code end}, waiting for what they add. */
    private void addBefore(int end) {
        for (int i = firstOpen(); i < end; i++) {
            while (addIfReady()) {
                // Those that have come need not wait for the one that has not.
            }
            if (shared.taken.compareAndSet(i, 0, 1)) {
                add(shared.program.additions().get(i));
            }
        }
    }

    private void add(RankSteps.Addition addition) {
        Step.Add step = addition.step();
        int source = call.names.source(step.firstRow());
        long rows = step.into().rows();
        long row = call.names.rowOfShard(source, step.firstRow());
        call.await(addition.needs(), log, source, row, rows);
        if (call.view != View.COMM_ONLY) {
            long start = System.nanoTime();
            add(step);
            if (step.addends().size() > 1) {
                log.add(Timeline.Kind.COMPUTE, source, call.rank(), row, rows, start);
            }
            call.fabric.worked();
        }
        call.end(addition.done());
    }

    private void add(Step.Add step) {
        long all = step.into().rows();
        for (long done = 0; done < all; ) {
            long row = step.firstRow() + done;
            long span = call.ofOneShard(row, all - done);
            long rows = call.count(row, span);
            if (rows > 0) {
                add(step, done, rows, step.into().firstRow() + done + shift(step.into(), row));
            }
            done += span;
        }
    }

    /** Some rows of sums, which are of one shard. */
    private void add(Step.Add step, long first, long rows, long intoRow) {
        int count = step.addends().size();
        boolean intoC = step.into().buffer() == StepPlan.C;
        if (intoC && count == 1) {
            Part only = step.addends().getFirst();
            finish(only.buffer(), only.firstRow() + first, rows, intoRow);
            return;
        }
        for (int i = 0; i < count; i++) {
            Part addend = step.addends().get(i);
            addends[i] = call.matrix(addend.rank(), addend.buffer());
            addendRows[i] = addend.firstRow() + first;
        }
        if (!intoC) {
            Matrix into = call.matrix(step.into().rank(), step.into().buffer());
            for (long row = 0; row < rows; row++) {
                sums.add(addends, addendRows, count, row, into, intoRow + row);
            }
            return;
        }
        for (long done = 0; done < rows; done += ADDED_ROWS) {
            long height = Math.min(ADDED_ROWS, rows - done);
            for (long row = 0; row < height; row++) {
                sums.add(addends, addendRows, count, done + row, row);
            }
            finishRows(added, 0, height, intoRow + done);
        }
    }

    /** Turns complete sums of a buffer into rows of the results. */
    private void finish(int buffer, long firstRow, long rows, long resultRow) {
        for (int i = 0; i < products.results().size(); i++) {
            Product result = products.results().get(i);
            Matrix second =
                    result.second() == null ? null : products.columns(buffer, i + 1, call.number);
            apply(i, products.columns(buffer, i, call.number), second, firstRow, rows, resultRow);
        }
    }

    /** Turns sums, by B, into rows of the results. */
    private void finishRows(Matrix[] of, long firstRow, long rows, long resultRow) {
        for (int i = 0; i < products.results().size(); i++) {
            Product result = products.results().get(i);
            Matrix second = result.second() == null ? null : of[i + 1];
            apply(i, of[i], second, firstRow, rows, resultRow);
        }
    }

    private void apply(int i, Matrix of, Matrix second, long row, long rows, long resultRow) {
        Product result = products.results().get(i);
        Matrix c = result.c(call.operatorCall);
        epilogue.apply(i, of, row, second, row, rows, 0, result.b().n(), c, resultRow);
    }

    private void log(Timeline.Kind kind, long row, long rows, int peer, long start) {
        int source = call.names.source(row);
        log.add(kind, source, peer, call.names.rowOfShard(source, row), rows, start);
    }
}
