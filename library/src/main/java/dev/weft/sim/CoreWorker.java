package dev.weft.sim;

import dev.weft.plan.Chunks;
import dev.weft.plan.RowBlock;

/** One thread that multiplies, as the executor's compute workers do. */
final class CoreWorker implements Station.Customer, Events.Action {

    private static final int TAKES = 0;

    private final Simulation simulation;
    private final SimulatedRank rank;
    private final CoreRun run;
    private final String track;
    private RowBlock block;
    private int chunk;
    private long doneRows;
    private long rows;
    private double waitsSinceNs;
    private double beganNs;
    private double earliestNs;

    CoreWorker(Simulation simulation, SimulatedRank rank, CoreRun run, int index) {
        this.simulation = simulation;
        this.rank = rank;
        this.run = run;
        this.track = "compute-" + index;
    }

    void start() {
        simulation.events().add(simulation.startNs(), this, TAKES);
    }

    @Override
    public void run(int detail) {
        if (detail == TAKES && block == null) {
            take();
        } else {
            proceed();
        }
    }

    private void take() {
        block = run.take();
        if (block == null) {
            return;
        }
        chunk = 0;
        doneRows = 0;
        earliestNs = simulation.startNs();
        proceed();
    }

    /** Goes on with the block until something is multiplied or awaited. */
    private void proceed() {
        while (isReady()) {
            if (run.gatherFirst()) {
                chunk = block.chunkCount();
                multiply(block.rows());
                return;
            }
            earliestNs = Math.max(earliestNs, rank.pathNs(tag(chunk)));
            chunk++;
            boolean last = chunk == block.chunkCount();
            if (last) {
                multiply(block.rows() - doneRows);
                return;
            }
            long ready = wholeQuanta(completeRows() - doneRows);
            if (run.stepRows() > 0 && ready >= run.stepRows() && !isReady()) {
                multiply(ready);
                return;
            }
        }
        waitsSinceNs = simulation.events().now();
        run.await(this);
    }

    /** Whether the next chunk is there, or all of them where the gather comes first. */
    boolean isReady() {
        return run.gatherFirst() ? rank.isComplete() : rank.hasArrived(tag(chunk));
    }

    private int tag(int index) {
        return rank.plan().chunks().tag(block.source(), block.firstChunk() + index);
    }

    private long completeRows() {
        Chunks chunks = rank.plan().chunks();
        int end = block.firstChunk() + chunk;
        long complete = end / chunks.colChunks() * chunks.chunkRows(block.source());
        return Math.clamp(complete - block.firstRow(), 0, block.rows());
    }

    private long wholeQuanta(long count) {
        return count / run.rowQuantum() * run.rowQuantum();
    }

    /** Who came at the same time as the awaited chunk has not waited. */
    void wake() {
        double now = simulation.events().now();
        if (now > waitsSinceNs) {
            tell(SpanSink.Kind.WAIT, block.rows() - doneRows, waitsSinceNs, now);
        }
        simulation.events().add(now, this, TAKES);
    }

    private void multiply(long count) {
        rows = count;
        beganNs = simulation.events().now();
        double workNs = run.workNs(block.source(), count);
        run.begins(workNs, earliestNs);
        simulation.wires().cores(rank.plan().rank()).serve(this, workNs);
    }

    @Override
    public void served() {
        double now = simulation.events().now();
        tell(SpanSink.Kind.COMPUTE, rows, beganNs, now);
        doneRows += rows;
        rank.busyUntil(now);
        if (chunk == block.chunkCount()) {
            rank.used(block.source());
            take();
        } else {
            proceed();
        }
    }

    private void tell(SpanSink.Kind kind, long count, double startNs, double endNs) {
        if (simulation.sink() != null) {
            int self = rank.plan().rank();
            SpanSink.Span span =
                    new SpanSink.Span(
                            kind,
                            block.source(),
                            kind == SpanSink.Kind.WAIT ? block.source() : self,
                            -1,
                            -1,
                            block.firstRow() + doneRows,
                            count,
                            0,
                            startNs,
                            endNs);
            simulation.sink().span(self, track, span);
        }
    }
}
