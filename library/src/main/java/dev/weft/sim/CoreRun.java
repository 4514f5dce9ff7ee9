package dev.weft.sim;

import dev.weft.plan.Chunks;
import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.RowBlock;
import dev.weft.plan.cut.Cut;
import dev.weft.tensor.DType;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Multiplies on a {@link CoreEngine}: the rank's workers take turns at row blocks, or parts of
 * their columns.
 */
final class CoreRun extends ProductRun {

    // What is done to an element of sums, in units of one core's time to copy it. Found on a
    // two-core Neoverse N1, which copies one in 0.33 ns, from six of the calls of
    // docs/results/prediction.md.

    /** To write it after a product: unlike a probe's, many columns do not stay in a near cache. */
    private static final double STORE = 0.7;

    /** To read it before a product, if another core has written it. */
    private static final double RESUME = 2;

    private static final double ADDITION = 3.3;

    /** To turn it into an element of C, of the same type or of 16 bits, or to round it. */
    private static final double FINISH = 2.4;

    private static final double ROUNDING = 8;

    private final CoreEngine engine;
    private final List<Worker> workers = new ArrayList<>();
    private final List<Worker> waiting = new ArrayList<>();

    /** Rows that are worth a separate product while others are late; 0 for none. */
    private final long stepRows;

    private final List<Long> partsOfK;

    /** The number of pieces that a row block is cut into for the workers. */
    private final int columnParts;

    CoreRun(Simulation simulation, SimulatedRank rank) {
        super(simulation, rank);
        this.engine = (CoreEngine) simulation.machine.engine();
        Scenario scenario = simulation.scenario;
        this.partsOfK = scenario.partsOfK(rank.plan);
        this.stepRows =
                simulation.view == SimulatedView.PIPELINED ? rank.plan.pacing().stepRows() : 0;
        int own = scenario.hosts().size(scenario.hosts().hostOf(rank.plan.rank()));
        int count = scenario.workers() > 0 ? scenario.workers() : Math.max(1, engine.cores() / own);
        int programs = rank.plan.programs();
        int ofProgram = Math.max(1, count / programs);
        this.columnParts =
                sums == null
                        ? Cut.columnParts(
                                scenario.chunks(), programs, ofProgram, scenario.columns())
                        : Cut.sumColumnParts(rank.plan, ofProgram);
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

    /** One core's time for rows of a block and a part of the columns. */
    private double workNs(RowBlock block, long rows, int part) {
        if (simulation.view == SimulatedView.COMM_ONLY) {
            return 0;
        }
        Scenario scenario = simulation.scenario;
        RankPlan plan = rank.plan;
        double work = 0;
        for (long k : partsOfK) {
            for (long n : scenario.columns()) {
                boolean far = !simulation.machine.memory().keeps((double) k * n * Float.BYTES);
                long cols = n * (part + 1) / columnParts - n * part / columnParts;
                work += engine.productNs(scenario.aType(), rows, k, cols, far);
                work += sums == null ? 0 : rows * (double) cols * STORE * copyNs();
            }
        }
        if (sums != null) {
            double copies =
                    (rank.arriving(tag(block, 0)) > 0 ? RESUME : 0)
                            + (scenario.sums().areRounded() ? ROUNDING : 0);
            work += (double) rows * scenario.chunks().cols() / columnParts * copies * copyNs();
        }
        boolean fromShard =
                block.source() == plan.rank() || plan.storage() == RankPlan.Storage.IN_PLACE;
        double copyGbps = simulation.machine.node().coreGbps();
        if (scenario.keepGathered()
                && fromShard
                && copyGbps > 0
                && part == 0
                && simulation.view == SimulatedView.PIPELINED) {
            long k = scenario.chunks().cols();
            work += (double) rows * k * scenario.aType().bytes() / copyGbps;
        }
        return work * slowness;
    }

    /** One core's time to add and finish rows. */
    private double finishNs(SumSteps.Rows rows) {
        double copies = ADDITION * sums.additions(rows);
        if (sums.areFinished(rows)) {
            copies += simulation.scenario.outType() == DType.FP32 ? FINISH : ROUNDING;
        }
        return sums.elements(rows) * copies * copyNs() * slowness;
    }

    /** One core's time to copy an element of sums. */
    private double copyNs() {
        double copyGbps = simulation.machine.node().coreGbps();
        return copyGbps > 0 ? Float.BYTES / copyGbps : 0;
    }

    /** The blocks of a program, which its workers take in turn, piece by piece. */
    private final class Blocks {

        private final List<RowBlock> order;

        /** By block. */
        private final int[] donePieces;

        /** By block: the earliest time at which its products could have been done. */
        private final double[] pathNs;

        private int next;

        Blocks(int program) {
            this.order = ordered(program);
            this.donePieces = new int[order.size()];
            this.pathNs = new double[order.size()];
        }

        /**
         * The next piece, or -1. Pieces are numbered block after block, and within a block by
         * parts.
         */
        int take() {
            return next < order.size() * columnParts ? next++ : -1;
        }

        RowBlock block(int piece) {
            return order.get(piece / columnParts);
        }

        /** Notes the earliest time at which a piece could be done. */
        void ends(int piece, double earliestNs) {
            int block = piece / columnParts;
            pathNs[block] = Math.max(pathNs[block], earliestNs);
        }

        double pathNs(int piece) {
            return pathNs[piece / columnParts];
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
        private SumSteps.Rows finished;
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

        /** Takes whole rows, or else the next free piece. */
        private void take() {
            if (sums != null && finish()) {
                return;
            }
            piece = blocks.take();
            block = piece < 0 ? null : blocks.block(piece);
            if (block != null) {
                chunk = 0;
                doneRows = 0;
                earliestNs = simulation.startNs;
                proceed();
            } else if (sums != null && sums.hasNext()) {
                waitsSinceNs = simulation.events.now();
                waiting.add(this);
            }
        }

        /** Begins to finish whole rows, if there are any. */
        private boolean finish() {
            finished = sums.take();
            if (finished != null) {
                beganNs = simulation.events.now();
                earliestNs = sums.pathNs(finished);
                double workNs = finishNs(finished);
                totalNs += workNs;
                pathNs = Math.max(pathNs, earliestNs + workNs);
                simulation.wires.cores(rank.plan.rank()).serve(this, workNs);
            }
            return finished != null;
        }

        /** Continues with the block until something is multiplied or awaited. */
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

        /** Whether the next chunk is there, or all of them if the gather comes first. */
        boolean isReady() {
            if (block == null) {
                return sums.isReady();
            }
            return gatherFirst ? rank.isComplete() : rank.has(tag(block, chunk));
        }

        private long completeRows() {
            Chunks chunks = rank.plan.chunks();
            int end = block.firstChunk() + chunk;
            long complete = end / chunks.colChunks() * chunks.chunkRows(block.source());
            return Math.clamp(complete - block.firstRow(), 0, block.rows());
        }

        /** A worker that arrived at the same time as the awaited chunk has not waited. */
        void wake() {
            double now = simulation.events.now();
            if (now > waitsSinceNs && block != null) {
                tell(SpanSink.Kind.WAIT, block.rows() - doneRows, waitsSinceNs, now);
            } else if (now > waitsSinceNs) {
                tellOf(sums.next(), SpanSink.Kind.WAIT, sums.sender(), waitsSinceNs, now);
            }
            simulation.events.add(now, this, 0);
        }

        private void multiply(long count) {
            rows = count;
            beganNs = simulation.events.now();
            double workNs = workNs(block, count, piece % columnParts);
            totalNs += workNs;
            pathNs = Math.max(pathNs, earliestNs + workNs);
            blocks.ends(piece, earliestNs + workNs);
            simulation.wires.cores(rank.plan.rank()).serve(this, workNs);
        }

        @Override
        public void served() {
            double now = simulation.events.now();
            if (finished != null) {
                finished(now);
                return;
            }
            tell(SpanSink.Kind.COMPUTE, rows, beganNs, now);
            doneRows += rows;
            rank.busyUntil(now);
            lastNs = Math.max(lastNs, now);
            if (chunk == block.chunkCount()) {
                if (blocks.isLast(piece)) {
                    rank.used(block.source());
                    if (sums != null) {
                        sums.multiplied(block, blocks.pathNs(piece));
                    }
                }
                block = null;
                take();
            } else {
                proceed();
            }
        }

        private void tell(SpanSink.Kind kind, long count, double fromNs, double toNs) {
            int peer = rank.plan.rank();
            if (kind == SpanSink.Kind.WAIT) {
                peer = sums == null ? block.source() : rank.sender(tag(block, 0));
            }
            long firstRow = block.firstRow() + doneRows;
            CoreRun.this.tell(kind, track, block.source(), peer, firstRow, count, fromNs, toNs);
        }

        /** Reports added sums as products. */
        private void finished(double now) {
            if (sums.additions(finished) > 0) {
                tellOf(finished.block(), SpanSink.Kind.COMPUTE, rank.plan.rank(), beganNs, now);
            }
            sums.done(finished, earliestNs + finishNs(finished));
            finished = null;
            take();
        }

        private void tellOf(
                RowBlock rows, SpanSink.Kind kind, int peer, double fromNs, double toNs) {
            CoreRun.this.tell(
                    kind, track, rows.source(), peer, rows.firstRow(), rows.rows(), fromNs, toNs);
        }
    }
}
