package dev.weft.bench;

import dev.weft.plan.Algorithm;
import dev.weft.report.Samples;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.tensor.NormalData;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What more ranks and more chunks cost, the work of all ranks together staying the same: the time
 * of a call against the number of ranks as threads of one JVM, and of two ranks against the chunks
 * of a shard. All worlds are prepared before, and take turns.
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
    public void run(BenchSettings settings, BenchSink sink) throws IOException {
        againstRanks(settings, sink);
        againstChunks(settings, sink);
    }

    /** Wide: 64 columns are left for each of 64 ranks. */
    private void againstRanks(BenchSettings settings, BenchSink sink) throws IOException {
        List<Integer> counts =
                settings.quick() ? List.of(1, 2, 4, 8) : List.of(1, 2, 4, 8, 16, 32, 64);
        List<SvgPlot.Series> curves = new ArrayList<>();
        try (Arena arena = Arena.ofShared();
                Turns turns = new Turns()) {
            Matrix a = data(arena, 0, settings.quick() ? 256 : 1024, settings.quick() ? 128 : 1024);
            Matrix b = data(arena, 1, a.cols(), settings.quick() ? 512 : 4096);
            for (Algorithm algorithm : ALGORITHMS) {
                for (int ranks : counts) {
                    turns.add(new RankWorld(ranks, settings.cores(), algorithm, 0, a, b));
                }
            }
            List<Samples> samples = turns.take(settings.quick());
            for (int i = 0; i < ALGORITHMS.size(); i++) {
                List<Samples> own = samples.subList(i * counts.size(), (i + 1) * counts.size());
                List<SvgPlot.Point> points = new ArrayList<>();
                for (int j = 0; j < own.size(); j++) {
                    BenchRow row =
                            row(
                                    ALGORITHMS.get(i).label()
                                            + ", "
                                            + counts.get(j)
                                            + (counts.get(j) == 1 ? " rank, " : " ranks, ")
                                            + describe(a, b),
                                    "1 rank",
                                    own.get(j),
                                    own.getFirst(),
                                    Map.entry("ranks", (double) counts.get(j)));
                    points.add(new SvgPlot.Point(counts.get(j), row.ratio()));
                    sink.row(row);
                }
                curves.add(new SvgPlot.Series(ALGORITHMS.get(i).label(), points));
            }
            plot(
                    PLOTS.get(0),
                    new SvgPlot(
                            "The same work on more ranks: " + describe(a, b),
                            "ranks, as threads on " + settings.cores() + " cores",
                            "speed, of that of 1 rank",
                            curves));
        }
    }

    /** Tall and narrow: enough to gather for the cut to matter. */
    private void againstChunks(BenchSettings settings, BenchSink sink) throws IOException {
        List<Integer> splits =
                settings.quick() ? List.of(1, 4, 16) : List.of(1, 2, 4, 8, 16, 32, 64, 128, 256);
        List<SvgPlot.Point> points = new ArrayList<>();
        try (Arena arena = Arena.ofShared();
                Turns turns = new Turns()) {
            Matrix a = data(arena, 0, settings.quick() ? 512 : 4096, settings.quick() ? 256 : 1024);
            Matrix b = data(arena, 1, a.cols(), settings.quick() ? 64 : 512);
            turns.add(new RankWorld(1, settings.cores(), Algorithm.RING, 0, a, b));
            RankWorld automatic = new RankWorld(2, settings.cores(), Algorithm.RING, 0, a, b);
            turns.add(automatic);
            for (int count : splits) {
                turns.add(new RankWorld(2, settings.cores(), Algorithm.RING, count, a, b));
            }
            List<Samples> samples = turns.take(settings.quick());
            for (int i = 0; i < splits.size(); i++) {
                BenchRow row =
                        row(
                                "ring, 2 ranks, "
                                        + splits.get(i)
                                        + " chunks per shard, "
                                        + describe(a, b),
                                "the default cut, " + automatic.chunks() + " chunks per shard",
                                samples.get(i + 2),
                                samples.get(1),
                                Map.entry("chunksPerShard", (double) splits.get(i)));
                points.add(new SvgPlot.Point(splits.get(i), row.ratio()));
                sink.row(row);
            }
            plot(
                    PLOTS.get(1),
                    new SvgPlot(
                            "The same work in more chunks: " + describe(a, b),
                            "chunks per shard",
                            "speed, of that of the default cut",
                            List.of(new SvgPlot.Series("ring, 2 ranks", points))));
        }
    }

    private static Matrix data(Arena arena, int stream, long rows, long cols) {
        Matrix matrix = Matrix.allocate(arena, DType.FP32, rows, cols);
        new NormalData(1, stream).fill(matrix);
        return matrix;
    }

    private static String describe(Matrix a, Matrix b) {
        return a.rows() + " x " + a.cols() + " x " + b.cols() + " fp32";
    }

    private static BenchRow row(
            String name,
            String peer,
            Samples weft,
            Samples other,
            Map.Entry<String, Double> varied) {
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put(varied.getKey(), varied.getValue());
        figures.put("weftMedianNs", weft.median() * 1e3);
        figures.put("weftSpreadNs", weft.spread() * 1e3);
        figures.put("peerMedianNs", other.median() * 1e3);
        figures.put("peerSpreadNs", other.spread() * 1e3);
        return new BenchRow(ITEM, name, peer, other.median() / weft.median(), figures);
    }

    private void plot(String name, SvgPlot plot) throws IOException {
        if (plots != null) {
            plot.write(plots.resolve(name));
        }
    }
}
