package dev.weft.cli.run;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.RunFailedException;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.data.DataFolder;
import dev.weft.cli.data.EpilogueData;
import dev.weft.cli.data.FolderLock;
import dev.weft.cli.data.OwnFiles;
import dev.weft.cli.data.ProblemRoom;
import dev.weft.cli.data.WholeProduct;
import dev.weft.cli.launch.ProcessLauncher;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ExecutionSpec.Launcher;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.Rates;
import dev.weft.cli.run.RunOptions.Inputs;
import dev.weft.cli.simulate.StoredModel;
import dev.weft.cli.verify.Verifier;
import dev.weft.cli.view.LivePage;
import dev.weft.fabric.World;
import dev.weft.files.TemporaryFiles;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.Reduction.Order;
import dev.weft.report.Promise;
import dev.weft.report.RunRecord;
import dev.weft.report.Verification;
import dev.weft.sim.Machines;
import dev.weft.tensor.DType;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * What all kinds of run have in common: inputs, ranks, and the verdict on their products.
 *
 * @param arguments the subcommand and its options, which every rank's process parses again
 */
record RunSteps(
        RunOptions options,
        ExecutionSpec execution,
        List<String> arguments,
        PrintWriter out,
        PrintWriter err) {

    /** The steps of a run with another execution. */
    RunSteps with(ExecutionSpec other) {
        return new RunSteps(options, other, arguments, out, err);
    }

    RunOutputs outputs() {
        return new RunOutputs(options, out);
    }

    Verification verify(Inputs inputs, List<RankReport> reports, Progress progress) {
        return verifier(inputs, reports.getFirst(), areAlike(reports), progress)
                .verify(
                        inputs.problem().sums() == null
                                ? reports.stream().allMatch(RankReport::gatheredExact)
                                : null,
                        reports.stream().allMatch(RankReport::keptEqual),
                        reports.stream().allMatch(RankReport::keptWithinBound));
    }

    /**
     * Prints the results and writes the requested files.
     *
     * @param page null if there is no live page
     * @return the exit code
     */
    int finish(
            RunOutputs outputs,
            LivePage page,
            Inputs inputs,
            Hosts hosts,
            List<RankReport> reports,
            Verification verification)
            throws IOException {
        ProblemSpec problem = inputs.problem();
        RankReport first = reports.get(problem.rankOf(0, 0));
        tellOfUnusedOptions(first, outputs.console());
        explain(problem, hosts, first, outputs.console());
        RunRecord measured = Records.of(problem, execution, hosts, reports, verification);
        RunRecord record = predicts() ? measured.beside(SimRun.predicted(this, problem)) : measured;
        try {
            writeProduct(inputs, verification, outputs.console());
        } finally {
            // What was measured is not lost with a C that cannot be written.
            outputs.write(record);
            if (page != null) {
                page.ended(() -> RunOutputs.shown(record.labelled(options.label)));
            }
        }
        return exitCode(verification);
    }

    private void writeProduct(Inputs inputs, Verification verification, Console console)
            throws IOException {
        if (options.c != null && verification.passed()) {
            console.info(
                    "C %s is in %s"
                            .formatted(
                                    WholeProduct.write(
                                            inputs.folder(), execution.epilogue(), options.c),
                                    options.c));
        } else if (inputs.fromFiles() && options.c == null) {
            console.info(
                    "Each rank's part of C is in %s; --c FILE writes the whole C"
                            .formatted(inputs.folder().folder().resolve("output_rank<r>.bin")));
        }
    }

    int exitCode(Verification verification) {
        return verification.passed()
                ? 0
                : ExitCode.ofWrongResult(": " + verification.describeFailure(), err);
    }

    String ranks(ProblemSpec problem, Hosts hosts) {
        if (execution.hostPeers()) {
            return "Rank 0 of " + problem.ranks() + " on the GPU, the others in host memory";
        }
        return "%s ranks (%s%s%s) on the %s%s"
                .formatted(
                        problem.ranks(),
                        execution.launcher(),
                        execution.link() > 0
                                ? ", each on a link of " + Rates.text(execution.link())
                                : "",
                        hosts.count() > 1 ? ", hosts of " + hosts : "",
                        execution.cuda() ? "GPU" : "CPU",
                        execution.epilogue() == null ? "" : ", epilogue " + execution.epilogue());
    }

    private static boolean areAlike(List<RankReport> reports) {
        return reports.stream().map(RankReport::device).distinct().count() == 1;
    }

    /**
     * @param report the report of one rank
     * @param alike whether all ranks run on the same kind of device
     */
    Verifier verifier(Inputs inputs, RankReport report, boolean alike, Progress progress) {
        if (!execution.cuda()) {
            // All ranks have agreed on one engine's bits.
            return Verifier.withEngine(
                    inputs.operands(),
                    inputs.folder(),
                    Gemms.withBitsOf(report.engine()),
                    execution.epilogue(),
                    order(),
                    progress);
        }
        // GPUs of different kinds sum in different orders: their ranks agree only within the bound.
        Promise promise =
                alike && execution.engine().equals("gated")
                        ? Promise.BITWISE
                        : Promise.FLOAT64_BOUND;
        return Verifier.ofCompared(
                inputs.operands(),
                inputs.folder(),
                promise,
                execution.epilogue(),
                order(),
                progress);
    }

    /** Checks before anything is written. */
    private void check(ProblemSpec problem) {
        options.execution.checkStrict(problem);
        EpilogueData.check(execution.epilogue(), problem);
        if (execution.cuda()) {
            CudaRules.check(problem, execution);
            CudaRules.tryOut(problem, execution);
        } else {
            // Refuse a missing library, or types that the engine does not support, before a file is
            // written.
            engine(problem);
        }
        if (predicts()) {
            // Refuse now what the machine cannot do, not after everything was measured.
            SimRun.predicted(this, problem);
        }
    }

    private void explain(ProblemSpec problem, Hosts hosts, RankReport report, Console console) {
        if (!options.explain) {
            return;
        }
        if (problem.sums() != null) {
            Hosts planned = execution.link() > 0 ? Hosts.apart(problem.ranks()) : hosts;
            Explanation.plans(problem, planned, report, console);
        }
        if (!report.candidates().isEmpty()) {
            Explanation.print(report.candidates(), console);
        } else {
            console.info(
                    "Nothing was chosen: --algorithm " + report.algorithm() + " was asked for");
        }
    }

    private void tellOfUnusedOptions(RankReport report, Console console) {
        List<String> given = options.execution.chunkOptions();
        boolean moves = execution.summing() != null || report.lanes() > 0;
        if (!moves && !given.isEmpty()) {
            console.info(
                    "Nothing travels with %s on these ranks: %s had no effect"
                            .formatted(report.algorithm(), String.join(", ", given)));
        }
    }

    /** Whether a machine's predicted times are shown with the measured ones. */
    private boolean predicts() {
        return options.execution.socVersion != null && !isSimulated();
    }

    private boolean isSimulated() {
        return options.execution.runMode.equals("sim");
    }

    /** Only after everything has been checked: invalid options give just one line. */
    private void tellRunMode(Console console) {
        if (options.execution.runMode.equals("auto")) {
            console.info("Run mode: cpu (-r cuda uses NVIDIA GPUs)");
        } else if (options.execution.runMode.equals("npu")) {
            console.info(
                    execution.cuda()
                            ? "Run mode: cuda, as there is no NPU that Weft can use"
                            : "Run mode: cpu, as there is neither an NPU that Weft can use nor an"
                                    + " NVIDIA GPU");
        }
        if (predicts()) {
            tellOfModel(console);
        }
    }

    /** Says so if the requested machine has no model of its own. */
    void tellOfModel(Console console) {
        String asked = options.execution.socVersion;
        Machines.ascendModel(asked)
                .filter(model -> !Machines.names().contains(Machines.ascendName(asked)))
                .ifPresent(
                        model ->
                                console.info(
                                        "%s has no model of its own: times are predicted for %s"
                                                .formatted(Machines.ascendName(asked), model)));
    }

    /** Unless it would take long; the seed's rule does not cover quantized inputs. */
    private boolean wantsGolden(ProblemSpec problem) {
        return problem.fp8() == null
                && (options.golden || Verifier.goldenIsQuick(Verifier.goldenSeconds(problem)));
    }

    private static void tellOfGolden(ProblemSpec problem, Console console) {
        console.info(
                text(
                        "golden.bin is left out: it would take about %.0f s here, --golden computes"
                                + " it",
                        Verifier.goldenSeconds(problem)));
    }

    /** Refuses what does not fit this host. */
    private void checkRoom(Inputs inputs, boolean golden, Console console) throws IOException {
        ProblemSpec problem = inputs.problem();
        DataFolder folder = inputs.folder();
        ProblemRoom room = ProblemRoom.of(problem, execution.epilogue());
        boolean generates = !inputs.fromFiles() && folder.lacksInputs(golden);
        room.toRun(problem, execution, generates ? room.toGenerate(golden) : null)
                .check(folder.folder(), folder.ownBytes(), console);
    }

    private Order order() {
        return execution.summing() == null ? Order.WHOLE : execution.summing().order();
    }

    /** Records what the outputs of {@code ranks} ranks in the data folder are. */
    void stampOutputs(Inputs inputs, int ranks) throws IOException {
        Set<String> names = outputNames(inputs.problem());
        inputs.folder().stampOutputs(ranks, names, order(), execution.epilogue() != null);
    }

    /** Names of the files in the data folder that hold this run's results. */
    private Set<String> outputNames(ProblemSpec problem) {
        int ranks = execution.hostPeers() ? 1 : problem.ranks();
        IntStream writers = IntStream.range(0, ranks).filter(rank -> !problem.sitsOut(rank));
        return OwnFiles.outputNames(writers, execution.keepGathered(), execution.npy());
    }

    /**
     * The inputs, generated if they are neither the user's own nor there yet, and a data folder
     * without outputs, which belongs to this run while {@code lock} is held. What is impossible is
     * refused before anything is touched.
     */
    Inputs prepare(Arena arena, FolderLock lock, Console console, Progress progress)
            throws IOException {
        Inputs inputs = options.open(arena);
        ProblemSpec problem = inputs.problem();
        check(problem);
        DataFolder folder = inputs.folder();
        Set<String> outputs = outputNames(problem);
        boolean golden = wantsGolden(problem);
        options.files().checkInputs(folder.folder(), folder.replacedBy(outputs));
        folder.refuseOtherOutputs(outputs);
        if (!inputs.fromFiles()) {
            folder.refuseOtherInputs(golden);
        }
        checkRoom(inputs, golden, console);
        if (!golden && !inputs.fromFiles() && problem.fp8() == null) {
            tellOfGolden(problem, console);
        }
        lock.takeToWrite();
        if (inputs.fromFiles()) {
            tellRunMode(console);
            inputs.files().remarks().forEach(console::info);
        } else {
            boolean fresh = folder.generate(golden, progress);
            tellRunMode(console);
            console.info(
                    "%s %s data, seed %s, in %s"
                            .formatted(
                                    fresh ? "Generated" : "Reusing",
                                    problem.data(),
                                    problem.seed(),
                                    options.problem.dataDir));
        }
        folder.discardOutputs(outputs);
        return inputs;
    }

    /**
     * Stores a model of this machine for auto if auto chooses and none is stored yet, so that later
     * runs need not measure.
     *
     * @param heartbeat called for ranks that wait meanwhile
     */
    void storeModel(ProblemSpec problem, Runnable heartbeat, Console console) {
        boolean chooses =
                execution.summing() == null
                        && execution.algorithm() == Algorithm.AUTO
                        && !execution.cuda()
                        && problem.largestGroup() > 1
                        && problem.m() > 0;
        if (chooses) {
            StoredModel.storeIfMissing(engine(problem), onCpu(problem.multipliedA()), heartbeat)
                    .ifPresent(
                            file ->
                                    console.info(
                                            "Measured this machine for auto, kept in %s; ./weft calibrate does it more thoroughly"
                                                    .formatted(file)));
        }
    }

    private Gemm engine(ProblemSpec problem) {
        return Gemms.byName(
                execution.engine(), onCpu(problem.multipliedA()), onCpu(problem.multipliedB()));
    }

    /** The CPU multiplies values of 8 bits as fp32. */
    private static DType onCpu(DType type) {
        return type.isScaled() ? DType.FP32 : type;
    }

    List<RankReport> launch(Inputs inputs, Progress progress, RoundListener listener)
            throws IOException {
        if (execution.start() == Launcher.PROCESSES) {
            TemporaryFiles.watch(options.problem.dataDir);
            int ranks = inputs.problem().ranks();
            try {
                return new ProcessLauncher<>(
                                Stream.concat(Stream.of("rank"), arguments.stream().skip(1))
                                        .toList(),
                                ranks,
                                execution.deadline(),
                                RankCommand.REPORT,
                                listener == null
                                        ? null
                                        : new ProcessLauncher.Live<>(
                                                RankCommand.LIVE, listener::round),
                                progress)
                        .run();
            } catch (UsageException e) {
                if (execution.isOwnAlgorithm()) {
                    // Its plans depend on the engine: only ranks have asked for them.
                    throw e;
                }
                // Everything was checked before: if a rank refuses, something has changed since.
                throw new RunFailedException(e.getMessage());
            }
        }
        if (execution.hostPeers()) {
            return List.of(new RankRun(inputs, execution, progress, listener).run(null));
        }
        try (World world = World.threads(inputs.problem().ranks(), execution.deadline())) {
            return world.call(
                    fabric ->
                            new RankRun(inputs, execution, progress.ofRank(fabric.rank()), listener)
                                    .run(fabric));
        }
    }
}
