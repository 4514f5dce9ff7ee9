package dev.weft.bench.cpu;

import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Figures;
import dev.weft.bench.measure.SkippedException;
import dev.weft.bench.peers.ChildCommand;
import dev.weft.bench.peers.Mpi;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Small gathers, where latency counts: Weft's beside MPI_Allgather of every MPI of this machine, on
 * the same ranks, which are processes. There may be more of them than cores, as the source's eight.
 */
final class GatherCase implements BenchCase {

    static final String ITEM = "gather";

    private static final Duration LIMIT = Duration.ofMinutes(4);
    private static final int SOURCE_RANKS = 8;

    /** No slower than MPI. */
    private static final double NEEDED = 1;

    @Override
    public String item() {
        return ITEM;
    }

    @Override
    public void run(Settings settings, Sink sink)
            throws SkippedException, IOException, InterruptedException {
        for (Mpi.Implementation mpi : Mpi.Implementation.values()) {
            List<String> way = Mpi.startAnyway(mpi, settings.folder()).orElse(null);
            if (way == null) {
                sink.skipped(ITEM, "no mpirun of " + mpi.label());
                continue;
            }
            for (int ranks : settings.quick() ? new int[] {2} : new int[] {2, 4, SOURCE_RANKS}) {
                measure(settings, sink, mpi, way, ranks);
            }
        }
    }

    private static void measure(
            Settings settings, Sink sink, Mpi.Implementation mpi, List<String> way, int ranks)
            throws IOException, InterruptedException {
        List<String> arguments = new ArrayList<>(List.of("bench", GatherRanksCommand.NAME));
        if (settings.quick()) {
            arguments.add("--quick");
        }
        List<String> command = new ArrayList<>(way);
        command.addAll(List.of("-n", Integer.toString(ranks)));
        command.addAll(ChildCommand.weft(arguments, settings.folder()).command());
        ChildCommand.Output output = new ChildCommand(command, settings.folder()).run(LIMIT);
        List<GatherTimes> all = GatherTimes.read(output.text().lines().toList());
        if (all.size() != GatherTimes.SIZES.size()) {
            throw new IOException(
                    "%d answers to %d sizes of item %s"
                            .formatted(all.size(), GatherTimes.SIZES.size(), ITEM));
        }
        for (GatherTimes times : all) {
            sink.row(row(mpi, ranks, times, true));
            sink.row(row(mpi, ranks, times, false));
        }
    }

    /** At the first shape of the source's tests, on its eight ranks, Weft must keep up. */
    static BenchRow row(Mpi.Implementation mpi, int ranks, GatherTimes times, boolean sideBySide) {
        GatherTimes.Size size = times.size();
        GatherTimes.Side weft = sideBySide ? times.columns() : times.rows();
        Figures figures = times.figures(weft);
        if (size.equals(GatherTimes.SOURCE) && ranks == SOURCE_RANKS) {
            figures.with("needed", NEEDED).with("pass", weft.speed() >= NEEDED);
        }
        String layout = sideBySide ? "side by side" : "below each other";
        String name =
                "%d ranks of %s, %s, %s".formatted(ranks, mpi.label(), size.describe(), layout);
        return new BenchRow(ITEM, name, "MPI_Allgather of " + mpi.label(), weft.speed(), figures);
    }
}
