package dev.weft.cli;

import dev.weft.fabric.World;
import dev.weft.report.Promise;
import dev.weft.report.RunRecord;
import dev.weft.report.RunRecordJson;
import dev.weft.report.Verification;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code weft run}: inputs, ranks, measurement, verification, summary. */
@Command(
        name = "run",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class,
        sortOptions = false,
        description =
                "Runs one problem on all ranks, measures it overlapped and not, verifies it, and"
                        + " prints a summary.",
        footer = {
            "",
            "Examples:",
            "  ./weft run",
            "  ./weft run -n 4 --gm 4096 --gk 4096 --gn 4096 --dtype bf16",
            "  ./weft run -n 4 --shards 400,0,599,1 --algorithm ring --launcher processes",
            "  ./weft run --a x.npy --b model.safetensors:layer.weight --transpose-b --json r.json",
            "  ./weft run -r cuda -n 4 --gm 8192 --gk 4096 --gn 4096 --dtype bf16",
            "  ./weft run -r cuda --peers host -n 8 --gm 8192 --gk 4096 --gn 14336",
            "",
            "Exit codes: 0 verified, 1 failed, 2 wrong usage or a part that is not there."
        })
final class RunCommand implements Callable<Integer> {

    @Spec CommandSpec spec;

    @Mixin RunOptions options;

    @Override
    public Integer call() throws IOException {
        ExecutionSpec execution = options.execution.spec();
        JsonTarget target = new JsonTarget(options.json, out());
        Console console = new Console(out(), options.quiet || target.toStandardOutput());
        Progress progress = Progress.forTerminal(options.quiet);
        try (Arena arena = Arena.ofShared()) {
            prepareData(execution, console, progress);
            RunOptions.Inputs inputs = options.open(arena);
            ProblemSpec problem = inputs.problem();
            if (inputs.fromFiles()) {
                check(problem, execution);
            }
            inputs.folder().discardOutputs();
            console.info(ranks(problem, execution) + ": " + problem.describe());
            console.info("Running warmup...");
            List<RankReport> reports = launch(inputs, execution, progress);
            tellOfUnusedOptions(reports.getFirst(), console);
            inputs.folder().stampOutputs(reports.size());
            Verification verification =
                    verifier(inputs, execution, reports, progress)
                            .verify(
                                    reports.stream().allMatch(RankReport::gatheredExact),
                                    reports.stream().allMatch(RankReport::keptEqual),
                                    reports.stream().allMatch(RankReport::keptWithinBound));
            RunRecord record = Records.of(problem, execution, reports, verification);
            new Summary(console).print(record);
            target.write(json -> RunRecordJson.write(record, json));
            return Outcome.exitCode(verification.passed(), verification, spec);
        } finally {
            progress.end();
        }
    }

    private static String ranks(ProblemSpec problem, ExecutionSpec execution) {
        if (execution.hostPeers()) {
            return "Rank 0 of " + problem.ranks() + " on the GPU, the others in host memory";
        }
        return problem.ranks()
                + " ranks ("
                + execution.launcher()
                + ") on the "
                + (execution.cuda() ? "GPU" : "CPU");
    }

    private static Verifier verifier(
            RunOptions.Inputs inputs,
            ExecutionSpec execution,
            List<RankReport> reports,
            Progress progress) {
        if (!execution.cuda()) {
            return Verifier.withEngine(
                    inputs.operands(), inputs.folder(), execution.engine(), progress);
        }
        // GPUs of different kinds sum in different orders: their ranks agree within the bound.
        boolean alike = reports.stream().map(RankReport::device).distinct().count() == 1;
        Promise promise =
                alike && execution.cudaEngine().sameBitsForAnyRows()
                        ? Promise.BITWISE
                        : Promise.FLOAT64_BOUND;
        return Verifier.ofCompared(inputs.operands(), inputs.folder(), promise, progress);
    }

    /** Before anything is written. */
    private void check(ProblemSpec problem, ExecutionSpec execution) {
        options.execution.checkStrict(problem);
        if (execution.cuda()) {
            CudaRules.check(problem, execution);
            CudaRules.tryOut(problem, execution);
        }
    }

    private void tellOfUnusedOptions(RankReport report, Console console) {
        List<String> given = options.execution.chunkOptions();
        if (report.lanes() == 0 && !given.isEmpty()) {
            console.info(
                    "Nothing travels with "
                            + report.algorithm()
                            + " on these ranks: "
                            + String.join(", ", given)
                            + " had no effect");
        }
    }

    private PrintWriter out() {
        return spec.commandLine().getOut();
    }

    private void prepareData(ExecutionSpec execution, Console console, Progress progress) {
        if ("auto".equals(options.execution.runMode)) {
            console.info("Run mode: cpu (-r cuda takes NVIDIA GPUs)");
        }
        if (options.fromFiles()) {
            return;
        }
        ProblemSpec problem = options.problem.spec();
        check(problem, execution);
        DataFolder folder = new DataFolder(options.problem.dataDir, problem);
        boolean fresh = folder.generate(Verifier.goldenIsAffordable(problem), progress);
        console.info(
                (fresh ? "Generated " : "Reusing ")
                        + problem.data()
                        + " data, seed "
                        + problem.seed()
                        + ", in "
                        + options.problem.dataDir);
    }

    private List<RankReport> launch(
            RunOptions.Inputs inputs, ExecutionSpec execution, Progress progress)
            throws IOException {
        if (execution.processes()) {
            List<String> arguments = spec.commandLine().getParent().getParseResult().originalArgs();
            int run = arguments.indexOf("run");
            return new ProcessLauncher(
                            inputs.problem().ranks(),
                            execution,
                            arguments.subList(run + 1, arguments.size()),
                            progress)
                    .run();
        }
        if (execution.hostPeers()) {
            return List.of(RankJob.of(inputs, execution, progress).run(null));
        }
        try (World world = World.threads(inputs.problem().ranks(), execution.deadline())) {
            return world.call(
                    fabric ->
                            RankJob.of(
                                            inputs,
                                            execution,
                                            fabric.rank() == 0 ? progress : new Progress(false))
                                    .run(fabric));
        }
    }
}
