package dev.weft.sim;

import dev.weft.plan.RankPlan;
import dev.weft.plan.RankPlan.RowBlock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Multiplies on a {@link TileEngine}, whose units are divided among the rank's programs. Each unit
 * takes the next tile of its program, in order of consumption, as soon as it is free, and waits for
 * that tile's rows. So once the rows of a block and of all blocks before it have arrived, the times
 * of its tiles follow from when the units are free: none of them needs the event queue.
 */
final class TileRun extends ProductRun implements Events.Action {

    private final TileEngine engine;

    /** Units that multiply; those that the call did not ask for are idle. */
    private final int units;

    private final List<Program> programs = new ArrayList<>();

    /** All of K that the rank multiplies a block with. */
    private final double k;

    /** Rows are finished one block after the other, at the rate of the memory. */
    private double finishedNs;

    TileRun(Simulation simulation, SimulatedRank rank) {
        super(simulation, rank);
        this.engine = (TileEngine) simulation.machine.engine();
        int workers = simulation.scenario.workers();
        this.units = workers > 0 ? Math.min(workers, engine.units()) : engine.units();
        this.k = simulation.scenario.partsOfK(rank.plan).stream().mapToDouble(part -> part).sum();
        int count = rank.plan.programs();
        for (int i = 0; i < count; i++) {
            // A program has at least one unit, whatever the engine has.
            int own = Math.max(1, (units + count - 1 - i) / count);
            programs.add(new Program(ordered(i), track(0, i), new double[own]));
        }
    }

    @Override
    void start() {
        programs.forEach(program -> Arrays.fill(program.freeNs, simulation.startNs));
        simulation.events.add(simulation.startNs, this, 0);
    }

    @Override
    public void run(int detail) {
        arrived();
    }

    /** Takes what has arrived. */
    @Override
    void arrived() {
        if (!gatherFirst || rank.isComplete()) {
            programs.forEach(Program::arrived);
        }
        if (sums != null) {
            finish();
        }
    }

    private void finish() {
        double gbps = simulation.machine.memory().gbps();
        for (SumSteps.Rows rows = sums.take(); rows != null; rows = sums.take()) {
            // An addition reads two and writes one; finishing reads one and writes one.
            double bytes = 3 * sums.additions(rows) * Float.BYTES;
            if (sums.areFinished(rows)) {
                bytes += Float.BYTES + simulation.scenario.outType().bytes();
            }
            double workNs = gbps > 0 ? sums.elements(rows) * bytes / gbps * slowness : 0;
            finishedNs = Math.max(finishedNs, simulation.events.now()) + workNs;
            double earliestNs = sums.pathNs(rows) + workNs;
            pathNs = Math.max(pathNs, earliestNs);
            SumSteps.Rows done = rows;
            simulation.events.add(finishedNs, ignored -> sums.done(done, earliestNs), 0);
        }
    }

    /** The units that multiply the same blocks. */
    private final class Program {

        private final List<RowBlock> order;
        private final String track;

        /** A heap of the times at which the units are free. */
        private final double[] freeNs;

        private int next;
        private int nextChunk;
        private double readyNs;
        private double toldUntilNs;
        private double latestNs;

        Program(List<RowBlock> order, String track, double[] freeNs) {
            this.order = order;
            this.track = track;
            this.freeNs = freeNs;
        }

        void arrived() {
            while (next < order.size()) {
                RowBlock block = order.get(next);
                for (; nextChunk < block.chunkCount(); nextChunk++) {
                    int tag = tag(block, nextChunk);
                    if (!rank.has(tag)) {
                        return;
                    }
                    readyNs = Math.max(readyNs, rank.happenedNs(tag));
                }
                multiply(block, gatherFirst ? rank.lastArrivalNs : readyNs);
                next++;
                nextChunk = 0;
                readyNs = 0;
            }
        }

        private void multiply(RowBlock block, double ready) {
            double firstNs = Double.MAX_VALUE;
            double workNs = 0;
            double endNs = 0;
            double longestNs = 0;
            for (long n : simulation.scenario.columns()) {
                if (n == 0) {
                    continue;
                }
                double tileNs = tileNs(block, n);
                longestNs = Math.max(longestNs, tileNs);
                long tiles = tiles(block.rows(), n);
                workNs += tiles * tileNs;
                for (long tile = 0; tile < tiles; tile++) {
                    double startNs = Math.max(freeNs[0], ready);
                    firstNs = Math.min(firstNs, startNs);
                    endNs = Math.max(endNs, startNs + tileNs);
                    replaceFirst(freeNs, startNs + tileNs);
                }
            }
            totalNs += workNs;
            double earliestNs = blockPathNs(block) + longestNs;
            pathNs = Math.max(pathNs, earliestNs);
            if (sums != null) {
                double at = Math.max(endNs, simulation.events.now());
                simulation.events.add(at, ignored -> sums.multiplied(block, earliestNs), 0);
            }
            if (rank.plan.storage() == RankPlan.Storage.PING_PONG) {
                double at = Math.max(endNs, simulation.events.now());
                simulation.events.add(at, rank::used, block.source());
            }
            if (endNs == 0) {
                return;
            }
            rank.busyUntil(endNs);
            lastNs = Math.max(lastNs, endNs);
            // The track stands for all units, so a span is as long as all of them need for the
            // block's tiles: while some have no tile, the track is idle for a part of the time. The
            // last span ends with the last tile.
            double shareNs = workNs / freeNs.length;
            double toldFromNs = Math.max(firstNs, toldUntilNs);
            latestNs = Math.max(latestNs, endNs);
            if (next == order.size() - 1) {
                toldFromNs = Math.max(toldFromNs, latestNs - shareNs);
            }
            toldUntilNs = Math.max(toldFromNs, Math.min(toldFromNs + shareNs, latestNs));
            tell(
                    SpanSink.Kind.COMPUTE,
                    track,
                    block.source(),
                    rank.plan.rank(),
                    block.firstRow(),
                    block.rows(),
                    toldFromNs,
                    toldUntilNs);
        }
    }

    private double blockPathNs(RowBlock block) {
        double path = simulation.startNs;
        for (int i = 0; i < block.chunkCount(); i++) {
            path = Math.max(path, rank.pathNs(tag(block, i)));
        }
        return path;
    }

    private long tiles(long rows, long n) {
        return Math.ceilDiv(rows, engine.tileRows()) * Math.ceilDiv(n, engine.tileCols());
    }

    /** The longer of a tile's operations and its share of the block's memory traffic. */
    private double tileNs(RowBlock block, long n) {
        if (simulation.view == SimulatedView.COMM_ONLY) {
            return 0;
        }
        long rows = block.rows();
        Scenario scenario = simulation.scenario;
        Machine.Memory memory = simulation.machine.memory();
        double operations = 2.0 * engine.tileRows() * engine.tileCols() * k;
        double operationsNs = operations / engine.gflops().get(scenario.aType());
        double bytes =
                rows * k * scenario.aType().bytes() * rowPasses(block, memory)
                        + (double) rows * n * outBytes(block)
                        + bBytes(rows, n, memory);
        double memoryNs = memory.gbps() > 0 ? bytes / tiles(rows, n) * units / memory.gbps() : 0;
        return (engine.tileUs() * 1e3 + Math.max(operationsNs, memoryNs)) * slowness;
    }

    /** Bytes per element: sums are written, and read before that if others have begun them. */
    private int outBytes(RowBlock block) {
        if (sums == null) {
            return simulation.scenario.outType().bytes();
        }
        return rank.arriving(tag(block, 0)) > 0 ? 2 * Float.BYTES : Float.BYTES;
    }

    /** How often memory handles a row: a ring's buffer is also written, and forwarded. */
    private int rowPasses(RowBlock block, Machine.Memory memory) {
        boolean inBuffer =
                rank.plan.storage() == RankPlan.Storage.PING_PONG
                        && block.source() != rank.plan.rank();
        if (!inBuffer) {
            return 1;
        }
        return memory.arrivalsOnChip() ? 0 : 3;
    }

    /** B stays on the chip if half of it holds B; otherwise units that run at once share it. */
    private double bBytes(long rows, long n, Machine.Memory memory) {
        double b = k * n * simulation.scenario.aType().bytes();
        if (memory.keeps(b)) {
            return 0;
        }
        double rowTiles = Math.ceilDiv(rows, engine.tileRows());
        double rowTilesAtOnce = Math.max(1, (double) units / Math.ceilDiv(n, engine.tileCols()));
        return b * rowTiles / rowTilesAtOnce;
    }

    private static void replaceFirst(double[] freeNs, double time) {
        int at = 0;
        for (int child = 1; child < freeNs.length; child = 2 * at + 1) {
            if (child + 1 < freeNs.length && freeNs[child + 1] < freeNs[child]) {
                child++;
            }
            if (time <= freeNs[child]) {
                break;
            }
            freeNs[at] = freeNs[child];
            at = child;
        }
        freeNs[at] = time;
    }

    @Override
    double leastNs() {
        int all = programs.stream().mapToInt(program -> program.freeNs.length).sum();
        return simulation.startNs + totalNs / all;
    }
}
