package dev.weft.sim;

import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.cut.Cut;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Multiplies on a {@link CoreEngine}: the rank's workers take row blocks in turn, or parts of their
 * columns.
 */
final class CoreRun extends ProductRun {

    private final CoreEngine engine;
    private final List<Worker> workers = new ArrayList<>();
    private final List<Worker> waiting = new ArrayList<>();

    /** Rows that are worth a product of their own while others are late; 0 for none. */
    private final long stepRows;

    /** Pieces in which workers take a row block. */
    private final int columnParts;

    CoreRun(Simulation simulation, SimulatedRank rank) {
        super(simulation, rank);
        this.engine = (CoreEngine) simulation.machine.engine();
        Scenario scenario = simulation.scenario;
        this.stepRows =
                simulation.view == SimulatedView.PIPELINED ? rank.plan.pacing().stepRows() : 0;
        int own = scenario.hosts().size(scenario.hosts().hostOf(rank.plan.rank()));
        int count = scenario.workers() > 0 ? scenario.workers() : Math.max(1, engine.cores() / own);
        int programs = rank.plan.programs();
        int ofProgram = Math.max(1, count / programs);
        this.columnParts =
                Cut.columnParts(scenario.chunks(), programs, ofProgram, scenario.columns());
        List<Blocks> blocks = IntStream.range(0, programs).mapToObj(Blocks::new).toList();
        for (int i = 0; i < Math.max(programs, count); i++) {
            int program = i % programs;
            workers.add(new Worker(track(i / programs, program), blocks.get(program)));
        }
    }

    @Override
    void start() {
        workers.forEach(worker -> simulation.events.add(simulation.startNs, worker, 0));
    }

    @Override
    void arrived() {
        for (int i = 0; i < waiting.size(); i++) {
            if (waiting.get(i).isReady()) {
                waiting.remove(i--).wake();
            }
        }
    }

    @Override
    double leastNs() {
        return simulation.startNs + totalNs / workers.size();
    }

    /** What one core takes for {@code rows} rows of {@code source} and a part of the columns. */
    private double workNs(int source, long rows, int part) {
        Scenario scenario = simulation.scenario;
        long k = scenario.chunks().cols();
        double work = 0;
        for (long n : scenario.columns()) {
            boolean far = !simulation.machine.memory().keeps((double) k * n * Float.BYTES);
            long cols = n * (part + 1) / columnParts - n * part / columnParts;
            work += engine.productNs(scenario.aType(), rows, k, cols, far);
        }
        RankPlan plan = rank.plan;
        boolean fromShard = source == plan.rank() || plan.storage() == RankPlan.Storage.IN_PLACE;
        double copyGbps = simulation.machine.node().coreGbps();
        if (scenario.keepGathered()
                && fromShard
                && copyGbps > 0
                && part == 0
                && simulation.view == SimulatedView.PIPELINED) {
            work += (double) rows * k * scenario.aType().bytes() / copyGbps;
        }
        return work * slowness;
    }

    /** The blocks of a program, which its workers take in turn, piece by piece. */
    private final class Blocks {

        private final List<RowBlock> order;

        /** By block. */
        private final int[] donePieces;

        private int next;

        Blocks(int program) {
            this.order = ordered(program);
            this.donePieces = new int[order.size()];
        }

        /** The number of a piece: block after block, and within a block by parts; or -1. */
        int take() {
            return next < order.size() * columnParts ? next++ : -1;
        }

        RowBlock block(int piece) {
            return order.get(piece / columnParts);
        }

        /** Whether it was the last of its block. */
        boolean isLast(int piece) {
            return ++donePieces[piece / columnParts] == columnParts;
        }
    }

    /** One thread that multiplies, as the executor's compute workers do. */
    private final class Worker implements Station.Customer, Events.Action {

        private final String track;
        private final Blocks blocks;
        private int piece;
        private RowBlock block;
        private int chunk;
        private long doneRows;
        private long rows;
        private double waitsSinceNs;
        private double beganNs;
        private double earliestNs;

        Worker(String track, Blocks blocks) {
            this.track = track;
            this.blocks = blocks;
        }

        @Override
        public void run(int detail) {
            if (block == null) {
                take();
            } else {
                proceed();
            }
        }

        /** Takes the next piece that nobody has. */
        private void take() {
            piece = blocks.take();
            block = piece < 0 ? null : blocks.block(piece);
            if (block != null) {
                chunk = 0;
                doneRows = 0;
                earliestNs = simulation.startNs;
                proceed();
            }
        }

        /** Goes on with the block until something is multiplied or awaited. */
        private void proceed() {
            while (isReady()) {
                if (gatherFirst) {
                    chunk = block.chunkCount();
                    multiply(block.rows());
                    return;
                }
                earliestNs = Math.max(earliestNs, rank.pathNs(tag(block, chunk)));
                chunk++;
                if (chunk == block.chunkCount()) {
                    multiply(block.rows() - doneRows);
                    return;
                }
                long quantum = engine.rowQuantum();
                long ready = (completeRows() - doneRows) / quantum * quantum;
                if (stepRows > 0 && ready >= stepRows && !isReady()) {
                    multiply(ready);
                    return;
                }
            }
            waitsSinceNs = simulation.events.now();
            waiting.add(this);
        }

        /** Whether the next chunk is there, or all of them where the gather comes first. */
        boolean isReady() {
            return gatherFirst ? rank.isComplete() : rank.hasArrived(tag(block, chunk));
        }

        private long completeRows() {
            Chunks chunks = rank.plan.chunks();
            int end = block.firstChunk() + chunk;
            long complete = end / chunks.colChunks() * chunks.chunkRows(block.source());
            return Math.clamp(complete - block.firstRow(), 0, block.rows());
        }

        /** Who came at the same time as the awaited chunk has not waited. */
        void wake() {
            double now = simulation.events.now();
            if (now > waitsSinceNs) {
                tell(SpanSink.Kind.WAIT, block.rows() - doneRows, waitsSinceNs, now);
            }
            simulation.events.add(now, this, 0);
        }

        private void multiply(long count) {
            rows = count;
            beganNs = simulation.events.now();
            double workNs = workNs(block.source(), count, piece % columnParts);
            totalNs += workNs;
            pathNs = Math.max(pathNs, earliestNs + workNs);
            simulation.wires.cores(rank.plan.rank()).serve(this, workNs);
        }

        @Override
        public void served() {
            double now = simulation.events.now();
            tell(SpanSink.Kind.COMPUTE, rows, beganNs, now);
            doneRows += rows;
            rank.busyUntil(now);
            if (chunk == block.chunkCount()) {
                if (blocks.isLast(piece)) {
                    rank.used(block.source());
                }
                take();
            } else {
                proceed();
            }
        }

        private void tell(SpanSink.Kind kind, long count, double fromNs, double toNs) {
            long firstRow = block.firstRow() + doneRows;
            CoreRun.this.tell(kind, track, block.source(), firstRow, count, fromNs, toNs);
        }
    }
}
