package dev.weft.sim;

import dev.weft.plan.step.Buffer;
import dev.weft.plan.step.Step;
import dev.weft.sim.Tasks.AddTask;
import dev.weft.sim.Tasks.ProductTask;
import dev.weft.trace.View;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Multiplies on a {@link TileEngine}, whose units are divided among the rank's programs. Each unit
 * takes the next tile of its program, in order, as soon as it is free, and waits for that tile's
 * rows. So once the rows of a product and of all products before it have arrived, the times of its
 * tiles follow from when the units are free: none of them needs the event queue. Sums are added at
 * the rate of the memory, one after the other.
 */
final class TileRun extends ProductRun {

    private final TileEngine engine;

    /** Units that multiply; those that the call did not ask for are idle. */
    private final int units;

    private final List<Units> byProgram = new ArrayList<>();
    private final boolean usesBuffersInTurn;

    /** When the last addition ends. */
    private double addedNs;

    TileRun(Simulation simulation, Tasks tasks, int rank, List<List<Step>> steps) {
        super(simulation, tasks, rank, steps);
        this.engine = (TileEngine) simulation.machine.engine();
        this.usesBuffersInTurn = tasks.usesBuffersInTurn;
        int workers = simulation.scenario.workers();
        this.units = workers > 0 ? Math.min(workers, engine.units()) : engine.units();
        int count = programs.size();
        for (int i = 0; i < count; i++) {
            // A program has at least one unit, whatever the engine has.
            int own = Math.max(1, (units + count - 1 - i) / count);
            byProgram.add(new Units(programs.get(i).products(), track(0, i), new double[own]));
        }
    }

    @Override
    void start() {
        for (Units each : byProgram) {
            Arrays.fill(each.freeNs, simulation.startNs);
            simulation.events.add(simulation.startNs, ignored -> each.proceed(), 0);
        }
        for (Program program : programs) {
            program.adds().forEach(add -> add.waits().whenAllHaveCome(() -> add(add)));
        }
    }

    private void add(AddTask add) {
        double gbps = simulation.machine.memory().gbps();
        // An addition reads two and writes one; finishing reads one and writes one.
        double bytes = 3.0 * add.additions() * Float.BYTES;
        if (add.finishes()) {
            bytes += Float.BYTES + simulation.scenario.outType().bytes();
        }
        double workNs = gbps > 0 ? add.elements() * bytes / gbps * slowness : 0;
        addedNs = Math.max(addedNs, simulation.events.now()) + workNs;
        double earliestNs = add.waits().pathNs(simulation.startNs) + workNs;
        pathNs = Math.max(pathNs, earliestNs);
        simulation.events.add(addedNs, ignored -> added(add, earliestNs), 0);
    }

    /** The units that take the products of a program. */
    private final class Units {

        private final List<ProductTask> products;
        private final String track;

        /** A heap of the times at which the units are free. */
        private final double[] freeNs;

        private int next;
        private double reportedUntilNs;
        private double latestNs;

        Units(List<ProductTask> products, String track, double[] freeNs) {
            this.products = products;
            this.track = track;
            this.freeNs = freeNs;
        }

        void proceed() {
            for (; next < products.size(); next++) {
                ProductTask product = products.get(next);
                if (!product.waits().haveCome()) {
                    product.waits().whenAllHaveCome(this::proceed);
                    return;
                }
                multiply(product, product.waits().cameNs());
            }
        }

        private void multiply(ProductTask product, double ready) {
            double firstNs = Double.MAX_VALUE;
            double workNs = 0;
            double endNs = 0;
            double longestNs = 0;
            for (long n : product.columns()) {
                if (n == 0) {
                    continue;
                }
                double tileNs = tileNs(product, n);
                longestNs = Math.max(longestNs, tileNs);
                long tiles = tiles(product.rows(), n);
                workNs += tiles * tileNs;
                for (long tile = 0; tile < tiles; tile++) {
                    double startNs = Math.max(freeNs[0], ready);
                    firstNs = Math.min(firstNs, startNs);
                    endNs = Math.max(endNs, startNs + tileNs);
                    replaceFirst(freeNs, startNs + tileNs);
                }
            }
            totalNs += workNs;
            double earliestNs = product.waits().pathNs(simulation.startNs) + longestNs;
            pathNs = Math.max(pathNs, earliestNs);
            finish(product, Math.max(endNs, simulation.events.now()), earliestNs);
            if (endNs == 0) {
                return;
            }
            simulation.busyUntil(endNs);
            lastNs = Math.max(lastNs, endNs);
            latestNs = Math.max(latestNs, endNs);
            if (simulation.sink != null) {
                reportShare(product, firstNs, workNs / freeNs.length);
            }
        }

        private void finish(ProductTask product, double atNs, double earliestNs) {
            if (product.raises().isEmpty()) {
                multiplied(product, earliestNs);
            } else {
                simulation.events.add(atNs, ignored -> multiplied(product, earliestNs), 0);
            }
        }

        /**
         * The track stands for all units, so a span is as long as all of them need for the
         * product's tiles: while some have no tile, the track is idle for a part of the time. The
         * last span ends with the last tile.
         */
        private void reportShare(ProductTask product, double firstNs, double shareNs) {
            double fromNs = Math.max(firstNs, reportedUntilNs);
            if (next == products.size() - 1) {
                fromNs = Math.max(fromNs, latestNs - shareNs);
            }
            reportedUntilNs = Math.max(fromNs, Math.min(fromNs + shareNs, latestNs));
            report(
                    SpanSink.Activity.COMPUTE,
                    track,
                    rank,
                    product.step().firstRow(),
                    product.rows(),
                    fromNs,
                    reportedUntilNs);
        }
    }

    private long tiles(long rows, long n) {
        return Math.ceilDiv(rows, engine.tileRows()) * Math.ceilDiv(n, engine.tileCols());
    }

    /** The longer of a tile's operations and its share of the product's memory traffic. */
    private double tileNs(ProductTask product, long n) {
        if (simulation.view == View.COMM_ONLY) {
            return 0;
        }
        long rows = product.rows();
        double k = product.k();
        Scenario scenario = simulation.scenario;
        Machine.Memory memory = simulation.machine.memory();
        double operations = 2.0 * engine.tileRows() * engine.tileCols() * k;
        double operationsNs = operations / engine.gflops().get(scenario.aType());
        double bytes =
                rows * k * scenario.aType().bytes() * rowPasses(product, memory)
                        + (double) rows * n * outBytes(product)
                        + bBytes(rows, k, n, memory);
        double memoryNs = memory.gbps() > 0 ? bytes / tiles(rows, n) * units / memory.gbps() : 0;
        return (engine.tileUs() * 1e3 + Math.max(operationsNs, memoryNs)) * slowness;
    }

    /** Bytes per element: sums are written, and read before that if others have begun them. */
    private int outBytes(ProductTask product) {
        if (!product.isSummed()) {
            return simulation.scenario.outType().bytes();
        }
        return product.resume() ? 2 * Float.BYTES : Float.BYTES;
    }

    /** How often memory handles a row: one that came into a buffer is also written, and sent on. */
    private int rowPasses(ProductTask product, Machine.Memory memory) {
        if (!usesBuffersInTurn || product.from() != Buffer.Kind.ROWS) {
            return 1;
        }
        return memory.arrivalsOnChip() ? 0 : 3;
    }

    /** B stays on the chip if half of it holds B; otherwise units that run at once share it. */
    private double bBytes(long rows, double k, long n, Machine.Memory memory) {
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
        int all = byProgram.stream().mapToInt(each -> each.freeNs.length).sum();
        return simulation.startNs + (all == 0 ? 0 : totalNs / all);
    }
}
