package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.SkippedException;
import dev.weft.report.RunRecord;
import dev.weft.report.Views;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * How much overlap is worth: pipelined against sequential for every algorithm and launcher, where
 * the gather is small, half and as long as the product; and against the product alone where the
 * gather costs nothing. A rank per core.
 */
final class OverlapCase implements BenchCase {

    static final String ITEM = "overlap";

    private static final int MOST_RANKS = 16;
    private static final String DIRECT = "direct";
    private static final List<String> LAUNCHERS = List.of("threads", "processes");

    /** Two products to learn from what a column of B costs. */
    private static final long FEW_COLUMNS = 16;

    private static final long MANY_COLUMNS = 128;

    /** Quick runs are all noise, and noise asks for any N. */
    private static final long QUICK_COLUMNS = 64;

    private final List<String> copying;

    OverlapCase() {
        this(List.of("ring", "bidirectional-ring", "mesh-push", "mesh-pull"));
    }

    /**
     * @param copying the algorithms to measure beside direct, all of which copy
     */
    OverlapCase(List<String> copying) {
        this.copying = List.copyOf(copying);
    }

    /**
     * Chooses N so that the product takes a wanted multiple of the gather, which does not depend on
     * N. The product's time is taken as a straight line through two measured points: a part for
     * reading A, and so much per column.
     *
     * @param gatherUs gathering A, at any N
     * @param fewUs a product with few columns
     * @param manyUs a product with many
     */
    record Sizes(double gatherUs, double fewUs, double manyUs) {

        /** Columns that the engine multiplies in one go: other numbers of them waste some of it. */
        private static final long PANEL = 64;

        /** Below a panel, what a vector holds at least. */
        private static final long LEAST = 8;

        /** Enough for any machine, and a bound where noise has tilted the line. */
        private static final long MOST = 4096;

        /** The sequential operator is measured in every run, whatever the algorithm. */
        static Sizes measured(OverlapRuns runs) throws IOException, InterruptedException {
            Views few = runs.run(DIRECT, "threads", FEW_COLUMNS).views();
            Views many = runs.run(DIRECT, "threads", MANY_COLUMNS).views();
            return new Sizes(
                    (few.sequentialComm().median() + many.sequentialComm().median()) / 2,
                    few.sequentialCompute().median(),
                    many.sequentialCompute().median());
        }

        /** N for gather : product of about {@code ratio}. */
        long columns(double ratio) {
            // Noise may not turn the line flat: a column costs at least a tenth of what it costs on
            // average.
            double perColumnUs =
                    Math.max(
                            (manyUs - fewUs) / (MANY_COLUMNS - FEW_COLUMNS),
                            0.1 * manyUs / MANY_COLUMNS);
            double fixedUs = Math.max(0, manyUs - perColumnUs * MANY_COLUMNS);
            double exact = (gatherUs / ratio - fixedUs) / perColumnUs;
            long step = exact < 0.75 * PANEL ? LEAST : PANEL;
            return Math.clamp(Math.round(exact / step) * step, LEAST, MOST);
        }
    }

    @Override
    public String item() {
        return ITEM;
    }

    @Override
    public void run(Settings settings, Sink sink)
            throws SkippedException, IOException, InterruptedException {
        int ranks = Math.min(MOST_RANKS, settings.cores());
        if (ranks < 2) {
            throw new SkippedException(
                    settings.cores() + " core: overlap needs two ranks, a core each");
        }
        boolean quick = settings.quick();
        long size = quick ? 128 : 4096;
        OverlapRuns runs =
                new OverlapRuns(
                        Files.createDirectories(settings.folder().resolve(ITEM)),
                        size,
                        size,
                        ranks,
                        settings.cores() / ranks,
                        quick ? 1 : 10,
                        quick ? 3 : 15);
        Sizes sizes = Sizes.measured(runs);
        Set<Long> done = new HashSet<>();
        // The smallest gather first: its direct run also tells what a free gather costs.
        for (double ratio : quick ? List.of(0.5) : List.of(0.1, 0.5, 1.0)) {
            long columns = Math.min(sizes.columns(ratio), quick ? QUICK_COLUMNS : Long.MAX_VALUE);
            if (!done.add(columns)) {
                sink.skipped(
                        ITEM,
                        "gather : product of %s: here no N comes nearer to it than %d, measured already"
                                .formatted(ratio, columns));
                continue;
            }
            for (String launcher : LAUNCHERS) {
                measureDirect(runs, launcher, columns, done.size() == 1, sink);
                measureCopying(runs, launcher, columns, sink);
            }
        }
    }

    private static void measureDirect(
            OverlapRuns runs, String launcher, long columns, boolean freeGather, Sink sink)
            throws IOException, InterruptedException {
        String name = runs.describe(DIRECT, launcher, columns);
        Views run = runs.run(DIRECT, launcher, columns).views();
        sink.row(OverlapRows.direct(name, run));
        if (freeGather) {
            // Every measured call finds its shard in place, and direct moves nothing.
            sink.row(OverlapRows.freeGather("free gather: " + name, run));
        }
    }

    /** Rows come when all of them are there: only then is the best of them known. */
    private void measureCopying(OverlapRuns runs, String launcher, long columns, Sink sink)
            throws IOException, InterruptedException {
        List<BenchRow> rows = new ArrayList<>();
        for (String algorithm : copying) {
            RunRecord run = runs.run(algorithm, launcher, columns);
            double bytesPerNs =
                    CopyRate.perCore(runs.cores(), runs.matrixBytes(), runs.chunkBytes(run));
            rows.add(
                    OverlapRows.copying(
                            runs.describe(algorithm, launcher, columns),
                            run.views(),
                            runs.cores(),
                            runs.movedBytes() / bytesPerNs));
        }
        OverlapRows.judgeBest(rows).forEach(sink::row);
    }
}
