package dev.weft.stress;

import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Ranks that are late at random, over thousands of calls. */
@Command(
        name = "stragglers",
        mixinStandardHelpOptions = true,
        description =
                "Calls without a barrier between them, by ranks and chunks that are late at random:"
                        + " shapes, algorithms and operands change, two operators at a time share one"
                        + " group, and every result is compared bit for bit.",
        footer = {
            "",
            "Examples:",
            "  ./weft stragglers                          10,000 calls on 4 ranks as threads",
            "  ./weft stragglers --launcher processes --calls 2000"
        })
final class StragglersCommand implements Callable<Integer> {

    @Spec CommandSpec spec;

    @Option(names = "--calls", paramLabel = "N", description = "Default: ${DEFAULT-VALUE}.")
    int calls = 10_000;

    @Option(
            names = {"-n", "--num_ranks"},
            paramLabel = "N",
            description = "Default: ${DEFAULT-VALUE}.")
    int ranks = 4;

    @Option(
            names = "--launcher",
            paramLabel = "NAME",
            description = "threads, processes, mpi or hosts (default: ${DEFAULT-VALUE}).")
    String launcher = "threads";

    @Option(
            names = "--delay",
            paramLabel = "MICROSECONDS",
            description =
                    "The longest delay of a rank, a chunk or a signal, one in four of which is late"
                            + " (default: ${DEFAULT-VALUE}).")
    long delayMicros = 300;

    @Option(names = "--seed", paramLabel = "N", description = "Of problems and delays.")
    long seed = 1;

    @Override
    public Integer call() {
        long began = System.nanoTime();
        Case run = run();
        if (run.launcher().isMpi() && MpirunRanks.unavailable().isPresent()) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--launcher " + launcher + ": " + MpirunRanks.unavailable().get());
        }
        Ending ending = run.execute();
        List<String> problems = ending.problems();
        Workload.Tally tally = ending.tally();
        spec.commandLine()
                .getOut()
                .printf(
                        Locale.ROOT,
                        "%d ranks (%s): %,d calls, %,d bytes compared, %d problems, %.1f s, seed %d%n",
                        ranks,
                        launcher,
                        tally.calls() / ranks,
                        tally.bytes(),
                        problems.size(),
                        (System.nanoTime() - began) / 1e9,
                        seed);
        problems.forEach(spec.commandLine().getOut()::println);
        spec.commandLine().getOut().flush();
        return problems.isEmpty() ? 0 : 1;
    }

    private Case run() {
        try {
            return Case.parse(
                    "launcher="
                            + launcher
                            + " ranks="
                            + ranks
                            + " calls="
                            + calls
                            + " fault=delay every=true deadline=30000 delay="
                            + delayMicros
                            + " seed="
                            + seed);
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), e.getMessage(), e);
        }
    }
}
