package dev.weft.bench.cpu;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.fabric.memory.RankEnvironment;
import dev.weft.fabric.memory.ShmJob;
import dev.weft.ffi.Mpi;
import dev.weft.ffi.MpiThreadLevel;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/**
 * One rank of the item {@code gather}; started by mpirun for {@link GatherCase}, not by people. The
 * process is a rank of MPI and a rank of Weft, by shared memory, at once.
 */
@Command(
        name = GatherRanksCommand.NAME,
        hidden = true,
        description = "One rank of the item gather; the first prints a line per size.")
public final class GatherRanksCommand implements Callable<Integer> {

    static final String NAME = "gather-ranks";

    private static final int MOST_TEXT = 4096;

    @Spec CommandSpec spec;

    @Option(names = "--quick", description = "Few rounds.")
    boolean quick;

    @Override
    public Integer call() throws IOException, InterruptedException {
        Mpi mpi = Mpi.load();
        // This thread is the only one that calls MPI, as in a program without Weft.
        mpi.initThread(MpiThreadLevel.FUNNELED);
        int rank = mpi.rank(mpi.world());
        try (ShmJob job = rank == 0 ? ShmJob.create() : null) {
            run(mpi, rank, job);
        }
        mpi.finish();
        return 0;
    }

    private void run(Mpi mpi, int rank, ShmJob job) throws IOException, InterruptedException {
        try (Fabric fabric = join(mpi, rank, job)) {
            for (GatherTimes.Size size : GatherTimes.SIZES) {
                try (GatherRace race = new GatherRace(fabric, mpi, size)) {
                    GatherTimes times = race.run(quick);
                    if (rank == 0) {
                        PrintWriter out = spec.commandLine().getOut();
                        times.lines().forEach(out::println);
                        out.flush();
                    }
                }
            }
            fabric.barrier();
        }
    }

    /** The first rank makes the folder to meet in and tells the others by MPI. */
    private static Fabric join(Mpi mpi, int rank, ShmJob job) {
        int ranks = mpi.size(mpi.world());
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment text = arena.allocate(MOST_TEXT);
            if (job != null) {
                Map<String, String> shared = job.environment(rank, ranks, World.DEFAULT_DEADLINE);
                StringBuilder lines = new StringBuilder();
                shared.forEach((name, value) -> lines.append(name + "=" + value + "\n"));
                text.setString(0, lines.toString(), StandardCharsets.UTF_8);
            }
            mpi.bcast(text.address(), MOST_TEXT, mpi.byteType(), 0, mpi.world());
            Map<String, String> environment = new LinkedHashMap<>();
            text.getString(0, StandardCharsets.UTF_8)
                    .lines()
                    .map(line -> line.split("=", 2))
                    .forEach(entry -> environment.put(entry[0], entry[1]));
            environment.put("WEFT_RANK", Integer.toString(rank));
            return RankEnvironment.join(environment, null);
        }
    }
}
