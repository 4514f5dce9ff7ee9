package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Figures;
import dev.weft.bench.peers.ChildCommand;
import dev.weft.plan.Algorithm;
import dev.weft.report.Samples;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * What Weft costs beside the work itself: the time until a small run is done, from the start of the
 * command to its end, when nothing has to be built any more; the first call of a process; and what
 * calls allocate on the heap.
 */
final class StartupCase implements BenchCase {

    static final String ITEM = "startup";

    private static final List<String> RUN =
            List.of("run --gm 64 --gk 64 --gn 64 --warmup 1 --iterations 1".split(" "));

    /** The first start may have to build Weft. */
    private static final Duration FIRST_LIMIT = Duration.ofMinutes(10);

    private static final Duration LIMIT = Duration.ofMinutes(1);

    /** Seconds that are wanted at most, where auto chooses and where nothing is to be chosen. */
    private static final double WITH_AUTO = 1.0;

    private static final double NAMED = 0.6;

    /** What the first call of a process may take of the time of the hundredth. */
    private static final double FIRST_OVER_LAST = 1.2;

    private final Path launcher;

    /** The launcher script that has started this process. */
    StartupCase() {
        this(System.getProperty("weft.home") == null ? null : launcherOfThisProcess());
    }

    /**
     * @param launcher the script {@code weft}, or null where it is not known
     */
    StartupCase(Path launcher) {
        this.launcher = launcher;
    }

    private static Path launcherOfThisProcess() {
        return Path.of(System.getProperty("weft.home"), "weft");
    }

    @Override
    public String item() {
        return ITEM;
    }

    @Override
    public void run(Settings settings, Sink sink) throws IOException, InterruptedException {
        if (launcher == null) {
            sink.skipped(ITEM, "start to end: not started by the script weft, which it would time");
        } else if (!Files.isExecutable(launcher)) {
            sink.skipped(ITEM, "start to end: " + launcher + " is not there to be started");
        } else {
            sink.row(startToEnd(settings, RUN, WITH_AUTO));
            List<String> named = new ArrayList<>(RUN);
            named.addAll(List.of("--algorithm", Algorithm.RING.label()));
            sink.row(startToEnd(settings, named, NAMED));
        }
        sink.row(firstCall(settings));
        for (Algorithm algorithm : Algorithm.values()) {
            if (algorithm != Algorithm.AUTO) {
                sink.row(heap(algorithm));
            }
        }
    }

    private BenchRow startToEnd(Settings settings, List<String> run, double wantedSeconds)
            throws IOException, InterruptedException {
        Path folder = Files.createDirectories(settings.folder().resolve(ITEM));
        start(folder, run, FIRST_LIMIT);
        long[] tookNs = new long[settings.quick() ? 2 : 5];
        for (int i = 0; i < tookNs.length; i++) {
            tookNs[i] = start(folder, run, LIMIT);
        }
        Samples samples = Samples.ofNs(tookNs);
        double medianNs = samples.median() * 1e3;
        return new BenchRow(
                ITEM,
                "second start of ./weft " + String.join(" ", run),
                wantedSeconds + " s",
                wantedSeconds * 1e9 / medianNs,
                new Figures()
                        .with("weftMedianNs", medianNs)
                        .with("weftSpreadNs", samples.spread() * 1e3));
    }

    /** Of fresh processes: medians of their first calls and of their last. */
    private static BenchRow firstCall(Settings settings) throws IOException, InterruptedException {
        Path folder = Files.createDirectories(settings.folder().resolve(ITEM));
        int processes = settings.quick() ? 1 : 5;
        long[] firstsNs = new long[processes];
        long[] lastsNs = new long[processes];
        for (int i = 0; i < processes; i++) {
            long[] ns = FirstCall.callsNs(folder);
            firstsNs[i] = ns[0];
            lastsNs[i] = ns[ns.length - 1];
        }
        Samples first = Samples.ofNs(firstsNs);
        Samples last = Samples.ofNs(lastsNs);
        double firstNs = first.median() * 1e3;
        double lastNs = last.median() * 1e3;
        return new BenchRow(
                ITEM,
                "first call of a process, " + FirstCall.DESCRIPTION,
                FIRST_OVER_LAST + " times the hundredth",
                FIRST_OVER_LAST * lastNs / firstNs,
                new Figures()
                        .with("weftMedianNs", firstNs)
                        .with("weftSpreadNs", first.spread() * 1e3)
                        .with("peerMedianNs", lastNs));
    }

    /** In a folder of the bench's own: inputs go to the folder {@code out} of where it is run. */
    private long start(Path folder, List<String> run, Duration limit)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(launcher.toString()));
        command.addAll(run);
        return new ChildCommand(command, folder).run(limit).tookNs();
    }

    private static BenchRow heap(Algorithm algorithm) {
        double bytesPerCall = HeapUse.bytesPerCall(algorithm);
        return new BenchRow(
                ITEM,
                "heap bytes per call, " + algorithm.label() + ", " + HeapUse.DESCRIPTION,
                "no allocation",
                bytesPerCall == 0 ? 1 : 0,
                new Figures().with("bytesPerCall", bytesPerCall));
    }
}
