package dev.weft.cli.run;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.Version;
import dev.weft.cli.data.DataFolder;
import dev.weft.cli.data.FolderLock;
import dev.weft.cli.data.OwnFiles;
import dev.weft.cli.launch.MpiCommandLine;
import dev.weft.cli.launch.MpiStart;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.verify.VerificationExit;
import dev.weft.cli.verify.Verifier;
import dev.weft.cli.view.LivePage;
import dev.weft.cli.view.LiveProgress;
import dev.weft.fabric.World;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.files.TemporaryFiles;
import dev.weft.plan.Hosts;
import dev.weft.report.Promise;
import dev.weft.report.RunRecord;
import dev.weft.report.Verification;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
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
            "  ./weft run -n 4 --gm 4096 --gk 4096 --gn 64 --report run.html --trace trace.json",
            "  ./weft run --iterations 2000 --watch",
            "  ./weft run -n 4 --launcher mpi --hostfile hosts.txt --algorithm ring",
            "  mpirun -n 4 ./weft run --gm 4096 --gk 4096 --gn 4096",
            "  ./weft run -r cuda -n 4 --gm 8192 --gk 4096 --gn 4096 --dtype bf16",
            "  ./weft run -n 4 --gm 4096 --gk 4096 --gn 64 --explain",
            "  ./weft run -r cuda --peers host -n 8 --gm 8192 --gk 4096 --gn 14336",
            "  ./weft run -r sim -v Ascend910B1 -n 8 --gm 16384 --gk 4096 --gn 4096",
            "  ./weft run -r sim -v my-machine.json -n 8 --slow 3=1.5 --explain --verify",
            "",
            "Exit codes: 0 verified (or simulated), 1 failed, 2 wrong usage or a part that is not there."
        })
public final class RunCommand implements Callable<Integer> {

    @Spec CommandSpec spec;

    @Mixin RunOptions options;

    @Override
    public Integer call() throws IOException {
        MpiEnvironment mpi = MpiEnvironment.current();
        ExecutionSpec execution;
        try {
            boolean simulated = "sim".equals(options.execution.runMode);
            if (simulated) {
                SimRun.check(options, spec.commandLine().getParseResult());
            } else {
                SimRun.checkReal(options);
            }
            execution = options.execution.spec();
            if (simulated) {
                return new SimRun(this, options, execution).call();
            }
            if (execution.start() == ExecutionSpec.Launcher.MPI) {
                checkMpi(mpi);
            }
        } catch (UsageException e) {
            // All ranks have the same command line: one of them tells what is wrong with it.
            if (mpi.rank().orElse(0) > 0) {
                return ExitCode.USAGE;
            }
            throw e;
        }
        if (execution.start() == ExecutionSpec.Launcher.MPI) {
            return mpi.launched()
                    ? new MpiRun(this, options, execution).call()
                    : startMpi(execution);
        }
        return run(execution);
    }

    private int startMpi(ExecutionSpec execution) throws IOException {
        options.files().check().checkOutputs(options.problem.dataDir);
        TemporaryFiles.watch(options.problem.dataDir);
        int ranks = options.problem.ranks;
        MpiCommandLine command = new MpiCommandLine(options.execution, ranks, arguments());
        return new MpiStart(command, ranks, execution.deadline(), out()).run();
    }

    /** Who starts ranks under MPI says how many; -n may only agree. */
    private void checkMpi(MpiEnvironment mpi) {
        boolean given = spec.commandLine().getParseResult().hasMatchedOption("--n-ranks");
        if (mpi.size().isPresent() && given && options.problem.ranks != mpi.size().getAsInt()) {
            throw new UsageException(
                    "-n "
                            + options.problem.ranks
                            + ", but MPI has started "
                            + mpi.size().getAsInt()
                            + " ranks: expected the same number, or no -n");
        }
        if (mpi.size().isPresent()) {
            options.problem.ranks = mpi.size().getAsInt();
        }
        if (!options.fromFiles()) {
            options.problem.spec();
        }
    }

    private List<String> arguments() {
        List<String> arguments = spec.commandLine().getParent().getParseResult().originalArgs();
        return arguments.subList(arguments.indexOf("run") + 1, arguments.size());
    }

    RunOutputs outputs() {
        return new RunOutputs(options, out());
    }

    /** Of a rank whose peer tells the user. */
    Console silent() {
        return new Console(out(), true);
    }

    private int run(ExecutionSpec execution) throws IOException {
        RunOutputs outputs = outputs();
        Progress terminal = Progress.forTerminal(options.quiet);
        try (LivePage page =
                LivePage.open(options.watch, options.title(), outputs.console(), err())) {
            try {
                return run(execution, outputs, terminal, page);
            } catch (IOException | RuntimeException e) {
                if (page != null) {
                    page.ended(e.getMessage());
                }
                throw e;
            }
        } finally {
            terminal.end();
        }
    }

    /**
     * @param page null where nobody watches
     */
    private int run(ExecutionSpec execution, RunOutputs outputs, Progress terminal, LivePage page)
            throws IOException {
        Console console = outputs.console();
        try (Arena arena = Arena.ofShared();
                FolderLock lock = new FolderLock(options.problem.dataDir)) {
            Progress progress = page == null ? terminal : new LiveProgress(terminal, page);
            RunOptions.Inputs inputs = prepare(execution, arena, lock, console, progress);
            ProblemSpec problem = inputs.problem();
            Hosts hosts = Hosts.one(problem.ranks());
            RoundListener listener =
                    page == null
                            ? null
                            : new LiveRun(page, problem, execution, hosts, problem.ranks());
            console.info(ranks(problem, execution, hosts) + ": " + problem.describe());
            if (execution.start() == ExecutionSpec.Launcher.THREADS) {
                readAll(inputs);
            }
            console.info("Running warmup...");
            List<RankReport> reports = launch(inputs, execution, progress, listener);
            tellOfUnusedOptions(reports.getFirst(), console);
            explain(reports.getFirst(), console);
            inputs.folder().stampOutputs(reports.size(), outputNames(problem, execution));
            Verification verification = verify(inputs, execution, reports, progress);
            RunRecord record = Records.of(problem, execution, hosts, reports, verification);
            outputs.write(record);
            if (page != null) {
                page.ended(() -> RunOutputs.shown(record.labelled(options.label)));
            }
            return VerificationExit.exitCode(verification.passed(), verification, spec);
        }
    }

    /** From now on nothing that is done to the files matters to ranks of this process. */
    private static void readAll(RunOptions.Inputs inputs) {
        IntStream.range(0, inputs.problem().ranks())
                .parallel()
                .forEach(
                        rank -> {
                            inputs.operands().shard(rank);
                            inputs.operands().b(rank);
                        });
    }

    Verification verify(
            RunOptions.Inputs inputs,
            ExecutionSpec execution,
            List<RankReport> reports,
            Progress progress) {
        return verifier(inputs, execution, areAlike(reports), progress)
                .verify(
                        reports.stream().allMatch(RankReport::gatheredExact),
                        reports.stream().allMatch(RankReport::keptEqual),
                        reports.stream().allMatch(RankReport::keptWithinBound));
    }

    String ranks(ProblemSpec problem, ExecutionSpec execution, Hosts hosts) {
        if (execution.hostPeers()) {
            return "Rank 0 of " + problem.ranks() + " on the GPU, the others in host memory";
        }
        return problem.ranks()
                + " ranks ("
                + execution.launcher()
                + (hosts.count() > 1 ? ", hosts of " + hosts : "")
                + ") on the "
                + (execution.cuda() ? "GPU" : "CPU");
    }

    private static boolean areAlike(List<RankReport> reports) {
        return reports.stream().map(RankReport::device).distinct().count() == 1;
    }

    /**
     * @param alike whether all ranks run on the same kind of device
     */
    Verifier verifier(
            RunOptions.Inputs inputs, ExecutionSpec execution, boolean alike, Progress progress) {
        if (!execution.cuda()) {
            return Verifier.withEngine(
                    inputs.operands(), inputs.folder(), execution.engine(), progress);
        }
        // GPUs of different kinds sum in different orders: their ranks agree within the bound.
        Promise promise =
                alike && execution.cudaEngine().sameBitsForAnyRows()
                        ? Promise.BITWISE
                        : Promise.FLOAT64_BOUND;
        return Verifier.ofCompared(inputs.operands(), inputs.folder(), promise, progress);
    }

    /** Before anything is written. */
    void check(ProblemSpec problem, ExecutionSpec execution) {
        options.execution.checkStrict(problem);
        if (execution.cuda()) {
            CudaRules.check(problem, execution);
            CudaRules.tryOut(problem, execution);
        }
    }

    void explain(RankReport report, Console console) {
        if (!options.explain) {
            return;
        }
        if (!report.candidates().isEmpty()) {
            new Explanation(report.candidates()).print(console);
        } else if (report.device().equals("cpu")) {
            console.info(
                    "Nothing was chosen: --algorithm " + report.algorithm() + " was asked for");
        } else {
            console.info("On GPUs auto is a rule, and no candidates are priced");
        }
    }

    void tellOfUnusedOptions(RankReport report, Console console) {
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

    PrintWriter err() {
        return spec.commandLine().getErr();
    }

    private PrintWriter out() {
        return spec.commandLine().getOut();
    }

    /** Not before everything has been checked: whoever asks for nonsense gets one line. */
    void tellRunMode(Console console) {
        if ("auto".equals(options.execution.runMode)) {
            console.info("Run mode: cpu (-r cuda takes NVIDIA GPUs)");
        }
    }

    /** Names of the files in the data folder that hold this run's results. */
    static Set<String> outputNames(ProblemSpec problem, ExecutionSpec execution) {
        int ranks = execution.hostPeers() ? 1 : problem.ranks();
        return OwnFiles.outputNames(ranks, execution.keepGathered(), execution.npy());
    }

    /**
     * The inputs, generated where they are not the user's own and not there yet, and a data folder
     * without outputs, which is this run's alone while {@code lock} is held. What cannot be is
     * refused before anything is touched.
     */
    RunOptions.Inputs prepare(
            ExecutionSpec execution,
            Arena arena,
            FolderLock lock,
            Console console,
            Progress progress)
            throws IOException {
        RunOptions.Inputs inputs = options.open(arena);
        ProblemSpec problem = inputs.problem();
        check(problem, execution);
        DataFolder folder = inputs.folder();
        Set<String> outputs = outputNames(problem, execution);
        boolean golden = Verifier.goldenIsAffordable(problem);
        options.files().checkInputs(folder.folder(), folder.replacedBy(outputs));
        folder.refuseOtherOutputs(outputs);
        if (!inputs.fromFiles()) {
            folder.refuseOtherInputs(golden);
        }
        lock.takeToWrite();
        if (inputs.fromFiles()) {
            tellRunMode(console);
        } else {
            boolean fresh = folder.generate(golden, progress);
            tellRunMode(console);
            console.info(
                    (fresh ? "Generated " : "Reusing ")
                            + problem.data()
                            + " data, seed "
                            + problem.seed()
                            + ", in "
                            + options.problem.dataDir);
        }
        folder.discardOutputs(outputs);
        return inputs;
    }

    List<RankReport> launch(
            RunOptions.Inputs inputs,
            ExecutionSpec execution,
            Progress progress,
            RoundListener listener)
            throws IOException {
        if (execution.start() == ExecutionSpec.Launcher.PROCESSES) {
            TemporaryFiles.watch(options.problem.dataDir);
            int ranks = inputs.problem().ranks();
            return new ProcessLauncher(ranks, execution, arguments(), progress, listener).run();
        }
        if (execution.hostPeers()) {
            return List.of(RankJob.of(inputs, execution, progress, listener).run(null));
        }
        try (World world = World.threads(inputs.problem().ranks(), execution.deadline())) {
            return world.call(
                    fabric ->
                            RankJob.of(inputs, execution, progress.ofRank(fabric.rank()), listener)
                                    .run(fabric));
        }
    }
}
