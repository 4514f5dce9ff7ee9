package dev.weft.bench.cpu;

import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** One rank of the item {@code auto}; started by {@link AutoCase}, not by people. */
@Command(
        name = AutoRanksCommand.NAME,
        hidden = true,
        description = "One rank of the item auto; the first prints a line per problem.")
public final class AutoRanksCommand implements Callable<Integer> {

    static final String NAME = "auto-ranks";

    @Spec CommandSpec spec;

    @Option(names = "--problems", required = true, split = ",", description = "By their index.")
    List<Integer> problems;

    @Option(names = "--mpi", description = "Ranks by MPI, not by the environment of launch.")
    boolean mpi;

    @Option(names = "--quick", description = "Few rounds.")
    boolean quick;

    @Override
    public Integer call() {
        List<RandomProblem> all = RandomProblem.all();
        for (int index : problems) {
            if (index < 0 || index >= all.size()) {
                throw new IllegalArgumentException(
                        "--problems " + index + ": expected 0 to " + (all.size() - 1));
            }
        }
        try (World world = mpi ? World.mpi(World.DEFAULT_DEADLINE) : World.joined()) {
            world.run(
                    fabric -> {
                        for (int index : problems) {
                            measure(fabric, all.get(index));
                        }
                    });
        }
        return 0;
    }

    private void measure(Fabric fabric, RandomProblem problem)
            throws IOException, InterruptedException {
        AutoTimes times = AutoRace.run(fabric, problem, AutoRace.effort(quick));
        if (fabric.rank() == 0) {
            PrintWriter out = spec.commandLine().getOut();
            out.println(times.line());
            out.flush();
        }
    }
}
