package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.bench.measure.Operands;
import dev.weft.bench.measure.Resources;
import dev.weft.bench.measure.Shape;
import dev.weft.op.Operator.View;
import dev.weft.plan.Algorithm;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What more ranks and more chunks cost, the work of all ranks together staying the same: the time
 * of a call against the number of ranks as threads of one JVM, and of two ranks against the chunks
 * of a shard. All ranks are prepared before, and take turns.
 */
final class RanksCase implements BenchCase {

    static final String ITEM = "ranks";

    private static final List<Algorithm> ALGORITHMS =
            List.of(Algorithm.DIRECT, Algorithm.RING, Algorithm.MESH_PUSH);

    /** The files that it draws. */
    static final List<String> PLOTS = List.of("ranks.svg", "chunks.svg");

    private final Path plots;

    /**
     * @param plots the folder for ranks.svg and chunks.svg, or null for no plots
     */
    RanksCase(Path plots) {
        this.plots = plots;
    }

    @Override
    public String item() {
        return ITEM;
    }

    @Override
    public void run(Settings settings, Sink sink) throws IOException, InterruptedException {
        againstRanks(settings, sink);
        againstChunks(settings, sink);
    }

    /** Wide: 64 columns are left for each of 64 ranks. */
    private void againstRanks(Settings settings, Sink sink)
            throws IOException, InterruptedException {
        List<Integer> counts =
                settings.quick() ? List.of(1, 2, 4, 8) : List.of(1, 2, 4, 8, 16, 32, 64);
        Shape shape = settings.quick() ? new Shape(256, 512, 128) : new Shape(1024, 4096, 1024);
        try (Worlds worlds = new Worlds(shape, settings.cores())) {
            for (Algorithm algorithm : ALGORITHMS) {
                for (int ranks : counts) {
                    worlds.add(ranks, algorithm, 0);
                }
            }
            Interleaved.Outcome outcome = worlds.measure(settings.quick());
            Map<String, Map<Integer, Double>> curves = new LinkedHashMap<>();
            for (int i = 0; i < ALGORITHMS.size(); i++) {
                String algorithm = ALGORITHMS.get(i).label();
                int one = i * counts.size();
                Map<Integer, Double> points = new LinkedHashMap<>();
                for (int j = 0; j < counts.size(); j++) {
                    int ranks = counts.get(j);
                    String name =
                            "%s, %d rank%s, %s"
                                    .formatted(
                                            algorithm, ranks, ranks == 1 ? "" : "s", worlds.what());
                    BenchRow row = row(name, "1 rank", outcome, one + j, one, "ranks", ranks);
                    sink.row(row);
                    points.put(ranks, row.ratio());
                }
                curves.put(algorithm, points);
            }
            plot(
                    PLOTS.get(0),
                    new SvgPlot(
                            "The same work on more ranks: " + worlds.what(),
                            "ranks, as threads on " + settings.cores() + " cores",
                            "speed, of that of 1 rank",
                            curves));
        }
    }

    /** Tall and narrow: enough to gather for the cut to matter. */
    private void againstChunks(Settings settings, Sink sink)
            throws IOException, InterruptedException {
        List<Integer> splits =
                settings.quick() ? List.of(1, 4, 16) : List.of(1, 2, 4, 8, 16, 32, 64, 128, 256);
        Shape shape = settings.quick() ? new Shape(512, 64, 256) : new Shape(4096, 512, 1024);
        try (Worlds worlds = new Worlds(shape, settings.cores())) {
            worlds.add(1, Algorithm.RING, 0);
            WeftRanks automatic = worlds.add(2, Algorithm.RING, 0);
            for (int count : splits) {
                worlds.add(2, Algorithm.RING, count);
            }
            Interleaved.Outcome outcome = worlds.measure(settings.quick());
            int chunks = automatic.operator().plan().chunks().count(0);
            String peer = "the default cut, " + chunks + " chunks per shard";
            Map<Integer, Double> points = new LinkedHashMap<>();
            for (int i = 0; i < splits.size(); i++) {
                int count = splits.get(i);
                String name =
                        "ring, 2 ranks, %d chunks per shard, %s".formatted(count, worlds.what());
                BenchRow row = row(name, peer, outcome, i + 2, 1, "chunksPerShard", count);
                sink.row(row);
                points.put(count, row.ratio());
            }
            plot(
                    PLOTS.get(1),
                    new SvgPlot(
                            "The same work in more chunks: " + worlds.what(),
                            "chunks per shard",
                            "speed, of that of the default cut",
                            Map.of("ring, 2 ranks", points)));
        }
    }

    /** Ranks in several numbers that take turns; the first has the product of a single rank. */
    private static final class Worlds implements AutoCloseable {

        private final Resources opened = new Resources();
        private final Shape shape;
        private final int cores;
        private final Operands operands;
        private final List<WeftRanks> worlds = new ArrayList<>();

        Worlds(Shape shape, int cores) {
            this.shape = shape;
            this.cores = cores;
            this.operands = opened.add(Operands.of(shape, DType.FP32));
        }

        /**
         * @param splits chunks per shard; 0 for Weft's own choice
         */
        WeftRanks add(int ranks, Algorithm algorithm, int splits) {
            WeftRanks world =
                    opened.add(
                            WeftRanks.gathering(
                                    ranks,
                                    operands,
                                    true,
                                    op -> {
                                        op.algorithm(algorithm);
                                        op.computeWorkers(Math.max(1, cores / ranks));
                                        return splits > 0 ? op.splitsPerRank(splits) : op;
                                    }));
            worlds.add(world);
            return world;
        }

        Interleaved.Outcome measure(boolean quick) throws IOException, InterruptedException {
            Interleaved.Outcome outcome =
                    new Interleaved(Interleaved.Effort.of(quick))
                            .measure(
                                    worlds.stream()
                                            .<Interleaved.Turn>map(
                                                    world -> () -> world.takeNs(View.PIPELINED))
                                            .toList());
            Matrix product = worlds.getFirst().product();
            worlds.forEach(world -> world.requireBits(product));
            return outcome;
        }

        String what() {
            return shape + " fp32";
        }

        @Override
        public void close() {
            opened.close();
        }
    }

    private static BenchRow row(
            String name,
            String peer,
            Interleaved.Outcome outcome,
            int weft,
            int other,
            String varied,
            int value) {
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put(varied, (double) value);
        outcome.put(figures, "weft", weft);
        outcome.put(figures, "peer", other);
        double ratio = outcome.medianNs(other) / outcome.medianNs(weft);
        return new BenchRow(ITEM, name, peer, ratio, figures);
    }

    private void plot(String name, SvgPlot plot) throws IOException {
        if (plots != null) {
            plot.write(plots.resolve(name));
        }
    }
}
