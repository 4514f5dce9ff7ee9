package dev.weft.cli;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.UsageMessage;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.options.Rates;
import dev.weft.cli.run.RunCommand;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.op.AllGatherMatmul;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Shards;
import dev.weft.tensor.DType;
import dev.weft.tensor.Matrix;
import dev.weft.trace.View;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.OverwrittenOptionException;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Unmatched;

/** {@code weft demo}: a run on a link that is as slow as this machine's product. */
@Command(
        name = "demo",
        description =
                "Shows in some seconds what overlap saves if the gather takes as long as the"
                        + " product. Measures the product on this machine, then starts a run whose"
                        + " two ranks are joined by a link of that rate. The product and the waiting"
                        + " are real; only the link's rate is set (run --link). Other options are"
                        + " passed on to run.",
        footer = {
            "",
            "Examples:",
            "  ./weft demo",
            "  ./weft demo --report demo.html --watch",
            "",
            "Exit codes: those of run."
        })
final class DemoCommand extends WeftCommand {

    private static final int RANKS = 2;
    private static final long M = 2048;
    private static final long K = 2048;
    private static final long N = 1024;
    private static final DType TYPE = DType.FP16;
    private static final int PROBES = 3;

    /** All views of a round together take about five times as long as the product. */
    private static final double PRODUCTS_PER_ROUND = 5;

    private static final double SECONDS = 4;
    private static final int FEWEST_ROUNDS = 3;
    private static final int MOST_ROUNDS = 50;

    /** More options of run. */
    @Unmatched List<String> more = new ArrayList<>();

    @Override
    public Integer call() {
        check();
        double seconds = productSeconds();
        long bytes = M / RANKS * K * TYPE.bytes();
        String rate = Rates.text(bytes * Byte.SIZE / seconds);
        int rounds =
                (int)
                        Math.clamp(
                                SECONDS / (PRODUCTS_PER_ROUND * seconds),
                                FEWEST_ROUNDS,
                                MOST_ROUNDS);
        List<String> run = run(rate, rounds);
        Console console = console(false);
        console.info(
                "A rank's product takes %.1f ms here. On a link of %s the gather takes as"
                        + " long.",
                1e3 * seconds, rate);
        console.info("The product and the waiting are real; only the link's rate is set:");
        console.print("$ ./weft " + String.join(" ", run));
        console.print("");
        out().flush();
        String[] arguments = run.toArray(String[]::new);
        CommandLine line = Main.commandLine(arguments).setOut(out()).setErr(err());
        return Main.execute(line, arguments);
    }

    /** Refuses what run would refuse, before anything is measured. */
    private void check() {
        String[] arguments = run("1gbit", FEWEST_ROUNDS).toArray(String[]::new);
        CommandLine line = Main.commandLine(arguments).setOut(out()).setErr(err());
        try {
            line.parseArgs(arguments);
        } catch (OverwrittenOptionException e) {
            throw new UsageException(
                    "%s; demo sets -n, --gm, --gk, --gn, --link, --warmup and --iterations itself:"
                            + " expected other options, or ./weft run",
                    e.getMessage());
        } catch (ParameterException e) {
            throw new UsageException("%s", UsageMessage.of(e, arguments, ""));
        }
        line.getSubcommands().get("run").<RunCommand>getCommand().check();
    }

    private List<String> run(String rate, int rounds) {
        List<String> run = new ArrayList<>(List.of("run", "-n", "" + RANKS));
        run.addAll(List.of("--gm", "" + M, "--gk", "" + K, "--gn", "" + N));
        run.addAll(List.of("--link", rate));
        if (more.stream().noneMatch(option -> option.startsWith("--algorithm"))) {
            // To choose an algorithm, auto would first measure the machine for some seconds.
            run.addAll(List.of("--algorithm", Algorithm.MESH_PUSH.label()));
        }
        run.addAll(List.of("--warmup", "1", "--iterations", "" + rounds));
        run.addAll(more);
        return run;
    }

    /** The time of one rank's product, while the other multiplies too. */
    private static double productSeconds() {
        try (World world = World.threads(RANKS);
                Arena arena = Arena.ofShared()) {
            Matrix b = ones(Matrix.allocate(arena, TYPE, K, N / RANKS));
            return world.call(fabric -> productSeconds(fabric, b)).stream()
                    .mapToDouble(Double::doubleValue)
                    .max()
                    .orElseThrow();
        }
    }

    private static double productSeconds(Fabric fabric, Matrix b) {
        try (AllGatherMatmul operator =
                AllGatherMatmul.on(fabric)
                        .a(Shards.even(M, RANKS), TYPE)
                        .b(b)
                        .algorithm(Algorithm.MESH_PUSH)
                        .prepare()) {
            ones(operator.nextShard());
            operator.callInPlace(View.PIPELINED);
            // A busy machine only makes them longer.
            return IntStream.range(0, PROBES)
                    .mapToDouble(i -> productSeconds(fabric, operator))
                    .min()
                    .orElseThrow();
        }
    }

    private static double productSeconds(Fabric fabric, AllGatherMatmul operator) {
        fabric.barrier();
        long start = System.nanoTime();
        operator.callInPlace(View.COMPUTE_ONLY);
        return (System.nanoTime() - start) / 1e9;
    }

    private static Matrix ones(Matrix matrix) {
        matrix.fill(() -> 1);
        return matrix;
    }
}
