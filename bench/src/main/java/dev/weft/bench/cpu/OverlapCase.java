package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.SkippedException;
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
        OverlapRuns runs = runs(settings, ranks);
        OverlapSizes sizes = calibrate(runs);
        // The smallest gather first: its direct run also tells what a free gather costs.
        List<Double> ratios = settings.quick() ? List.of(0.5) : List.of(0.1, 0.5, 1.0);
        Set<Long> done = new HashSet<>();
        for (double ratio : ratios) {
            long columns =
                    Math.min(
                            sizes.columns(ratio),
                            settings.quick() ? QUICK_COLUMNS : Long.MAX_VALUE);
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

    private static OverlapRuns runs(Settings settings, int ranks) throws IOException {
        long size = settings.quick() ? 128 : 4096;
        return new OverlapRuns(
                Files.createDirectories(settings.folder().resolve(ITEM)),
                size,
                size,
                ranks,
                settings.cores() / ranks,
                settings.quick() ? 1 : 10,
                settings.quick() ? 3 : 15);
    }

    /** The sequential operator is measured in every run, whatever the algorithm. */
    private static OverlapSizes calibrate(OverlapRuns runs)
            throws IOException, InterruptedException {
        RunFigures few = runs.run(DIRECT, "threads", FEW_COLUMNS);
        RunFigures many = runs.run(DIRECT, "threads", MANY_COLUMNS);
        double gatherNs = (few.medianNs("sequential/comm") + many.medianNs("sequential/comm")) / 2;
        return new OverlapSizes(
                gatherNs,
                FEW_COLUMNS,
                few.medianNs("sequential/compute"),
                MANY_COLUMNS,
                many.medianNs("sequential/compute"));
    }

    private static void measureDirect(
            OverlapRuns runs, String launcher, long columns, boolean freeGather, Sink sink)
            throws IOException, InterruptedException {
        String name = runs.describe(DIRECT, launcher, columns);
        RunFigures run = runs.run(DIRECT, launcher, columns);
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
            RunFigures run = runs.run(algorithm, launcher, columns);
            double bytesPerNs =
                    CopyRate.perCore(runs.cores(), runs.matrixBytes(), runs.chunkBytes(run));
            rows.add(
                    OverlapRows.copying(
                            runs.describe(algorithm, launcher, columns),
                            run,
                            runs.cores(),
                            runs.movedBytes() / bytesPerNs));
        }
        OverlapRows.judgeBest(rows).forEach(sink::row);
    }
}
