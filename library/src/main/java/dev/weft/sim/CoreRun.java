package dev.weft.sim;

import dev.weft.plan.cut.Cut;
import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Step;
import dev.weft.sim.Tasks.AddTask;
import dev.weft.sim.Tasks.ProductTask;
import dev.weft.tensor.DType;
import dev.weft.trace.View;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * Multiplies and adds on a {@link CoreEngine}: the rank's workers take turns at products, or parts
 * of their columns. A worker that is free or waits takes sums that can be added first.
 */
final class CoreRun extends ProductRun {

    private final CoreEngine engine;
    private final List<Worker> workers = new ArrayList<>();

    /** The number of pieces that a product is cut into for the workers. */
    private final int columnParts;

    CoreRun(Simulation simulation, Tasks tasks, int rank, List<List<Step>> steps) {
        super(simulation, tasks, rank, steps);
        this.engine = (CoreEngine) simulation.machine.engine();
        Scenario scenario = simulation.scenario;
        int own = scenario.hosts().size(scenario.hosts().hostOf(rank));
        int count = scenario.workers() > 0 ? scenario.workers() : Math.max(1, engine.cores() / own);
        int of = programs.size();
        this.columnParts = of == 0 ? 1 : columnParts(Math.max(1, count / of));
        List<Pieces> pieces = programs.stream().map(Pieces::new).toList();
        for (int i = 0; of > 0 && i < Math.max(of, count); i++) {
            workers.add(new Worker(track(i / of, i % of), pieces.get(i % of)));
        }
    }

    private int columnParts(int ofProgram) {
        List<ProductTask> all =
                programs.stream().flatMap(program -> program.products().stream()).toList();
        List<Long> columns = simulation.scenario.columns();
        if (all.stream().anyMatch(ProductTask::isSummed)) {
            long cols = columns.stream().mapToLong(n -> n).sum();
            return Cut.sumColumnParts(all.size(), cols, ofProgram);
        }
        Map<Integer, Long> blocks =
                all.stream()
                        .map(ProductTask::owner)
                        .collect(Collectors.groupingBy(Function.identity(), Collectors.counting()));
        long most = blocks.values().stream().mapToLong(n -> n).max().orElse(0);
        return Cut.columnParts(
                mostRows(),
                most / programs.size(),
                all.size() / programs.size(),
                ofProgram,
                columns);
    }

    /** The most rows of A that a rank has. */
    private long mostRows() {
        return simulation.scenario.placement().ranks().stream()
                .mapToLong(each -> each.a().count())
                .max()
                .orElse(0);
    }

    @Override
    void start() {
        workers.forEach(worker -> simulation.events.add(simulation.startNs, worker, 0));
    }

    @Override
    double leastNs() {
        return simulation.startNs + (workers.isEmpty() ? 0 : totalNs / workers.size());
    }

    /** One core's time for rows of a product and a part of the columns. */
    private double workNs(ProductTask product, long rows, int part) {
        Scenario scenario = simulation.scenario;
        if (simulation.view == View.COMM_ONLY || scenario.columns().isEmpty()) {
            return 0;
        }
        CoreEngine.CallCosts costs = engine.inCalls();
        double work = 0;
        double sums = 0;
        for (long n : product.columns()) {
            long cols = n * (part + 1) / columnParts - n * part / columnParts;
            sums += (double) rows * n / columnParts;
            for (long k : product.parts()) {
                boolean far = !simulation.machine.memory().keeps((double) k * n * Float.BYTES);
                work += engine.productNs(scenario.aType(), rows, k, cols, far);
                work += product.isSummed() ? rows * (double) cols * costs.store() * copyNs() : 0;
            }
        }
        if (product.isSummed()) {
            double copies =
                    (product.resume() ? costs.resume() : 0)
                            + (product.into() == Buffer.Kind.ROUNDED_SUMS ? costs.rounding() : 0);
            work += sums * copies * copyNs();
        }
        double copyGbps = copyGbps();
        if (scenario.keepGathered()
                && product.from() == Buffer.Kind.A
                && copyGbps > 0
                && part == 0
                && simulation.view == View.PIPELINED) {
            work += rows * product.k() * scenario.aType().bytes() / copyGbps;
        }
        return work * slowness;
    }

    /** One core's time to add and finish. */
    private double addNs(AddTask add) {
        CoreEngine.CallCosts costs = engine.inCalls();
        double copies = costs.addition() * add.additions();
        if (add.finishes()) {
            copies +=
                    simulation.scenario.outType() == DType.FP32 ? costs.finish() : costs.rounding();
        }
        return add.elements() * copies * copyNs() * slowness;
    }

    private double copyGbps() {
        return simulation.machine.node().coreGbps() * engine.inCalls().copyRate();
    }

    /** One core's time to copy an element of sums. */
    private double copyNs() {
        return copyGbps() > 0 ? Float.BYTES / copyGbps() : 0;
    }

    /** A program's products, which its workers take in turn, piece by piece, and its additions. */
    private final class Pieces {

        private final Program program;

        /** By product. */
        private final int[] donePieces;

        /** By product: the earliest time at which it could have been done. */
        private final double[] pathNs;

        private int next;
        private final Queue<AddTask> ready = new ArrayDeque<>();
        private int unadded;
        private final List<Worker> waiting = new ArrayList<>();

        Pieces(Program program) {
            this.program = program;
            this.donePieces = new int[program.products().size()];
            this.pathNs = new double[donePieces.length];
            this.unadded = program.adds().size();
            program.adds().forEach(add -> add.waits().whenAllHaveCome(() -> canBeAdded(add)));
        }

        private void canBeAdded(AddTask add) {
            ready.add(add);
            List.copyOf(waiting).forEach(Worker::wake);
        }

        /**
         * The next piece, or -1. Pieces are numbered product after product, and within one by
         * parts.
         */
        int take() {
            return next < donePieces.length * columnParts ? next++ : -1;
        }

        /** Notes that a piece is done. */
        void done(int piece) {
            int index = piece / columnParts;
            if (++donePieces[index] == columnParts) {
                multiplied(program.products().get(index), pathNs[index]);
            }
        }
    }

    /** One thread that multiplies and adds, as the executor's workers do. */
    private final class Worker implements Station.Customer, Events.Action {

        private final String track;
        private final Pieces pieces;
        private int piece = -1;
        private ProductTask product;
        private AddTask add;

        /** The next of the product's waits. */
        private int wait;

        /** Columns of the last rows that have begun to come. */
        private long cols;

        private long completeRows;
        private long doneRows;
        private long rows;
        private boolean waits;
        private double waitsSinceNs;
        private double beganNs;
        private double earliestNs;

        Worker(String track, Pieces pieces) {
            this.track = track;
            this.pieces = pieces;
        }

        @Override
        public void run(int detail) {
            proceed();
        }

        /** Adds, or else multiplies what has come, or else waits. */
        private void proceed() {
            add = pieces.ready.poll();
            if (add != null) {
                beginAdd();
                return;
            }
            if (product == null) {
                piece = pieces.take();
                if (piece < 0) {
                    if (pieces.unadded > 0) {
                        await();
                    }
                    return;
                }
                product = pieces.program.products().get(piece / columnParts);
                wait = 0;
                cols = 0;
                completeRows = 0;
                doneRows = 0;
                earliestNs = simulation.startNs;
            }
            if (!multiplies()) {
                await();
                product.waits().await(wait, this::wake);
            }
        }

        private void beginAdd() {
            pieces.unadded--;
            beganNs = simulation.events.now();
            double workNs = addNs(add);
            totalNs += workNs;
            pathNs = Math.max(pathNs, addPathNs() + workNs);
            simulation.wires.cores(rank).serve(this, workNs);
        }

        private double addPathNs() {
            return add.waits().pathNs(simulation.startNs);
        }

        /** Begins to multiply if all has come, or enough of it. */
        private boolean multiplies() {
            Waits waitsFor = product.waits();
            for (; wait < waitsFor.words().length; wait++) {
                if (waitsFor.missing(wait) == wait) {
                    long quantum = engine.rowQuantum();
                    long some = (completeRows - doneRows) / quantum * quantum;
                    boolean enough = product.leastRows() > 0 && some >= product.leastRows();
                    if (enough) {
                        multiply(some);
                    }
                    return enough;
                }
                Word word = waitsFor.words()[wait];
                earliestNs = Math.max(earliestNs, word.pathNs);
                cols += word.cols;
                if (cols >= product.parts().getFirst()) {
                    cols = 0;
                    long complete = word.endRow - product.firstRow();
                    completeRows = Math.clamp(complete, 0, product.rows());
                }
            }
            multiply(product.rows() - doneRows);
            return true;
        }

        private void multiply(long count) {
            rows = count;
            beganNs = simulation.events.now();
            double workNs = workNs(product, count, piece % columnParts);
            totalNs += workNs;
            double endsNs = earliestNs + workNs;
            pathNs = Math.max(pathNs, endsNs);
            int index = piece / columnParts;
            pieces.pathNs[index] = Math.max(pieces.pathNs[index], endsNs);
            simulation.wires.cores(rank).serve(this, workNs);
        }

        private void await() {
            waits = true;
            waitsSinceNs = simulation.events.now();
            pieces.waiting.add(this);
        }

        /** The wait is over; a worker that arrived at the same time has not waited. */
        private void wake() {
            if (!waits) {
                return;
            }
            waits = false;
            pieces.waiting.remove(this);
            double now = simulation.events.now();
            if (now > waitsSinceNs && simulation.sink != null) {
                reportWait(now);
            }
            simulation.events.add(now, this, 0);
        }

        private void reportWait(double now) {
            AddTask next = pieces.ready.peek();
            if (product != null) {
                int owner = product.owner();
                reportWait(
                        owner < 0 ? product.step().waits().get(wait).by() : owner,
                        product.step().firstRow() + doneRows,
                        product.rows() - doneRows,
                        now);
            } else if (next != null) {
                int by = next.step().waits().getLast().by();
                reportWait(by, next.step().firstRow(), next.step().into().rows(), now);
            }
        }

        private void reportWait(int peer, long firstRow, long count, double now) {
            report(SpanSink.Activity.WAIT, track, peer, firstRow, count, waitsSinceNs, now);
        }

        @Override
        public void served() {
            double now = simulation.events.now();
            simulation.busyUntil(now);
            if (add != null) {
                endAdd(now);
            } else {
                endProduct(now);
            }
            proceed();
        }

        private void endAdd(double now) {
            if (add.additions() > 0 && simulation.sink != null) {
                long firstRow = add.step().firstRow();
                reportWork(firstRow, add.step().into().rows(), now);
            }
            added(add, addPathNs() + addNs(add));
        }

        private void endProduct(double now) {
            lastNs = Math.max(lastNs, now);
            if (simulation.sink != null) {
                reportWork(product.step().firstRow() + doneRows, rows, now);
            }
            doneRows += rows;
            if (doneRows == product.rows()) {
                product = null;
                pieces.done(piece);
            }
        }

        private void reportWork(long firstRow, long count, double now) {
            report(SpanSink.Activity.COMPUTE, track, rank, firstRow, count, beganNs, now);
        }
    }
}
