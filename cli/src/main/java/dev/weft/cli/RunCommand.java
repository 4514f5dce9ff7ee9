package dev.weft.cli;

import dev.weft.fabric.World;
import dev.weft.report.RunRecord;
import dev.weft.report.RunRecordJson;
import dev.weft.report.Verification;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Writer;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
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
            "",
            "Exit codes: 0 verified, 1 failed, 2 wrong usage."
        })
final class RunCommand implements Callable<Integer> {

    @Spec CommandSpec spec;

    @Mixin RunOptions options;

    @Override
    public Integer call() throws IOException {
        ExecutionSpec execution = options.execution.spec();
        checkRecordTarget();
        boolean recordToStdout = "-".equals(options.json);
        Console console = new Console(out(), options.quiet || recordToStdout);
        Progress progress = Progress.forTerminal(options.quiet);
        try (Arena arena = Arena.ofShared()) {
            prepareData(console, progress);
            RunOptions.Inputs inputs = options.open(arena);
            ProblemSpec problem = inputs.problem();
            Files.createDirectories(options.problem.dataDir);
            console.info(
                    problem.ranks()
                            + " ranks ("
                            + execution.launcher()
                            + ") on the CPU: "
                            + problem.describe());
            console.info("Running warmup...");
            List<RankReport> reports = launch(inputs, execution, progress);
            Verification verification =
                    new Verifier(
                                    problem,
                                    inputs.operands(),
                                    inputs.folder(),
                                    execution.engine(),
                                    progress)
                            .verify(
                                    reports.stream().allMatch(RankReport::gatheredExact),
                                    reports.stream().allMatch(RankReport::keptEqual));
            RunRecord record = Records.of(problem, execution, reports, verification);
            new Summary(console).print(record);
            writeRecord(record);
            return verification.passed() ? 0 : Main.FAILED;
        }
    }

    private void checkRecordTarget() {
        if (options.json == null || options.json.equals("-")) {
            return;
        }
        Path folder = Path.of(options.json).toAbsolutePath().getParent();
        if (!Files.isDirectory(folder) || Files.isDirectory(Path.of(options.json))) {
            throw new UsageException(
                    "--json " + options.json + ": expected a file in a folder that exists, or -");
        }
    }

    private void writeRecord(RunRecord record) throws IOException {
        if (options.json == null) {
            return;
        }
        if (options.json.equals("-")) {
            RunRecordJson.write(record, out());
            out().flush();
            return;
        }
        Path target = Path.of(options.json).toAbsolutePath();
        Path part = target.resolveSibling(target.getFileName() + ".part");
        try (Writer writer = Files.newBufferedWriter(part)) {
            RunRecordJson.write(record, writer);
        }
        Files.move(part, target, StandardCopyOption.ATOMIC_MOVE);
    }

    private PrintWriter out() {
        return spec.commandLine().getOut();
    }

    private void prepareData(Console console, Progress progress) {
        if ("auto".equals(options.execution.runMode)) {
            console.info("Run mode: cpu (the CUDA path is not there yet)");
        }
        if (options.fromFiles()) {
            return;
        }
        ProblemSpec problem = options.problem.spec();
        options.execution.checkStrict(problem);
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
        try (World world = World.threads(inputs.problem().ranks(), execution.deadline())) {
            return world.call(
                    fabric ->
                            new RankRun(
                                            inputs.problem(),
                                            execution,
                                            inputs.operands(),
                                            inputs.folder(),
                                            fabric.rank() == 0 ? progress : new Progress(false))
                                    .run(fabric));
        }
    }
}
