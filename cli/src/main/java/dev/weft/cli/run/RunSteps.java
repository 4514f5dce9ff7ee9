package dev.weft.cli.run;

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
import dev.weft.cli.options.RunRequest;
import dev.weft.cli.run.RunOptions.Inputs;
import dev.weft.cli.simulate.StoredModel;
import dev.weft.cli.verify.Verifier;
import dev.weft.cli.view.LivePage;
import dev.weft.fabric.World;
import dev.weft.files.TemporaryFiles;
import dev.weft.gemm.Gemm;
import dev.weft.gemm.Gemms;
import dev.weft.plan.Hosts;
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
                        reports.stream().allMatch(RankReport::gatheredExact),
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
        tellOfUnusedOptions(problem, first, outputs.console());
        explain(first, outputs.console());
        RunRecord measured = Records.of(inputs.request(), hosts, reports, verification);
        RunRecord record =
                predicts() ? measured.beside(SimRun.predicted(this, inputs.request())) : measured;
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
                    "C %s is in %s",
                    WholeProduct.write(inputs.folder(), execution.epilogue(), options.c),
                    options.c);
        } else if (inputs.fromFiles() && options.c == null) {
            console.info(
                    "Each rank's part of C is in %s; --c FILE writes the whole C",
                    inputs.folder().folder().resolve("output_rank<r>.bin"));
        }
    }

    int exitCode(Verification verification) {
        return verification.passed()
                ? 0
                : ExitCode.ofWrongResult(": " + verification.describeFailure(), err);
    }

    String ranks(ProblemSpec problem, Hosts hosts) {
        if (execution.place().hostPeers()) {
            return "Rank 0 of " + problem.ranks() + " on the GPU, the others in host memory";
        }
        return "%s ranks (%s%s%s) on the %s%s"
                .formatted(
                        problem.ranks(),
                        execution.place().launcher().label(),
                        execution.place().link() > 0
                                ? ", each on a link of " + Rates.text(execution.place().link())
                                : "",
                        hosts.count() > 1 ? ", hosts of " + hosts : "",
                        execution.place().cuda() ? "GPU" : "CPU",
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
        if (!execution.place().cuda()) {
            // All ranks have agreed on one engine's bits.
            return Verifier.withEngine(
                    inputs.operands(),
                    inputs.folder(),
                    Gemms.withBitsOf(report.engine()),
                    execution.epilogue(),
                    execution.order(),
                    inputs.problem().gathers() ? null : inputs.request().reduction(),
                    progress);
        }
        // GPUs of different kinds sum in different orders: their ranks agree only within the bound.
        Promise promise =
                alike && execution.workers().engine().equals("gated")
                        ? Promise.BITWISE
                        : Promise.FLOAT64_BOUND;
        return Verifier.ofCompared(
                inputs.operands(),
                inputs.folder(),
                promise,
                execution.epilogue(),
                execution.order(),
                progress);
    }

    /** Checks before anything is written. */
    private void check(RunRequest request) {
        ProblemSpec problem = request.problem();
        options.execution.checkStrict(problem);
        EpilogueData.check(execution.epilogue(), problem);
        if (execution.place().cuda()) {
            CudaRules.check(request);
            CudaRules.checkOnGpu(request);
        } else {
            // Refuse a missing library, or types that the engine does not support, before a file is
            // written.
            engine(problem);
        }
        if (predicts()) {
            // Refuse now what the machine cannot do, not after everything was measured.
            SimRun.predicted(this, request);
        }
    }

    private void explain(RankReport report, Console console) {
        if (!options.explain) {
            return;
        }
        Explanation.print(report.plans(), report.candidates(), console);
        if (report.candidates().isEmpty()) {
            console.info("Nothing was chosen: --algorithm %s was asked for", report.algorithm());
        }
    }

    private void tellOfUnusedOptions(ProblemSpec problem, RankReport report, Console console) {
        List<String> given = options.execution.chunkOptions();
        boolean moves = !problem.gathers() || report.lanes() > 0;
        if (!moves && !given.isEmpty()) {
            console.info(
                    "Nothing travels with %s on these ranks: %s had no effect",
                    report.algorithm(), String.join(", ", given));
        }
    }

    /** Whether a machine's predicted times are shown with the measured ones. */
    private boolean predicts() {
        return options.execution.socVersion != null && !options.isSimulated();
    }

    /** Only after everything has been checked: invalid options give just one line. */
    private void tellRunMode(Console console) {
        if (options.execution.runMode.equals("auto")) {
            console.info("Run mode: cpu (-r cuda uses NVIDIA GPUs)");
        } else if (options.execution.runMode.equals("npu")) {
            console.info(
                    execution.place().cuda()
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
                                        "%s has no model of its own: times are predicted for %s",
                                        Machines.ascendName(asked), model));
    }

    /** Unless it would take long; the seed's rule does not cover quantized inputs. */
    private boolean wantsGolden(ProblemSpec problem) {
        return !problem.quantizes()
                && (options.golden || Verifier.goldenIsQuick(Verifier.goldenSeconds(problem)));
    }

    /** Refuses what does not fit this host. */
    private void checkRoom(Inputs inputs, boolean golden, Console console) throws IOException {
        ProblemSpec problem = inputs.problem();
        DataFolder folder = inputs.folder();
        ProblemRoom room = ProblemRoom.of(problem, execution.epilogue());
        boolean generates = !inputs.fromFiles() && folder.lacksInputs(golden);
        room.toRun(inputs.request(), generates ? room.toGenerate(golden) : null)
                .check(folder.folder(), folder.ownBytes(), console);
    }

    /** Records what the outputs of {@code ranks} ranks in the data folder are. */
    void stampOutputs(Inputs inputs, int ranks) throws IOException {
        Set<String> names = outputNames(inputs.request());
        inputs.folder().stampOutputs(ranks, names, execution.order(), execution.epilogue() != null);
    }

    /** Names of the files in the data folder that hold this run's results. */
    private Set<String> outputNames(RunRequest request) {
        return OwnFiles.outputNames(
                request.writers().stream().mapToInt(rank -> rank),
                execution.keepGathered(),
                execution.npy());
    }

    /**
     * The inputs, generated if they are neither the user's own nor there yet, and a data folder
     * without outputs, which belongs to this run while {@code lock} is held. What is impossible is
     * refused before anything is touched.
     */
    Inputs prepare(Arena arena, FolderLock lock, Console console, Progress progress)
            throws IOException {
        Inputs inputs = options.open(execution, arena);
        ProblemSpec problem = inputs.problem();
        check(inputs.request());
        DataFolder folder = inputs.folder();
        Set<String> outputs = outputNames(inputs.request());
        boolean golden = wantsGolden(problem);
        options.files().checkInputs(folder.folder(), folder.replacedBy(outputs));
        folder.refuseOtherOutputs(outputs);
        if (!inputs.fromFiles()) {
            folder.refuseOtherInputs(golden);
        }
        checkRoom(inputs, golden, console);
        if (!golden && !inputs.fromFiles() && !problem.quantizes()) {
            console.info(
                    "golden.bin is left out: it would take about %.0f s here, --golden computes it",
                    Verifier.goldenSeconds(problem));
        }
        lock.takeToWrite();
        if (inputs.fromFiles()) {
            tellRunMode(console);
            inputs.files().remarks().forEach(console::info);
        } else {
            boolean fresh = folder.generate(golden, progress);
            tellRunMode(console);
            console.info(
                    "%s %s data, seed %s, in %s",
                    fresh ? "Generated" : "Reusing",
                    problem.data(),
                    problem.seed(),
                    options.problem.dataDir);
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
    void storeModel(RunRequest request, Runnable heartbeat, Console console) {
        // A model of an engine for blocks would be taken for this machine's by others.
        if (request.choosesByModel() && request.problem().blocks() == null) {
            StoredModel.storeIfMissing(
                            engine(request.problem()),
                            onCpu(request.problem().multipliedA()),
                            heartbeat)
                    .ifPresent(
                            file ->
                                    console.info(
                                            "Measured this machine for auto, kept in %s; ./weft calibrate does it more thoroughly",
                                            file));
        }
    }

    private Gemm engine(ProblemSpec problem) {
        if (problem.blocks() != null) {
            return Gemms.ofBlocks(execution.workers().engine(), problem.blocks());
        }
        return Gemms.byName(
                execution.workers().engine(),
                onCpu(problem.multipliedA()),
                onCpu(problem.multipliedB()));
    }

    /** The CPU multiplies values of 8 bits as fp32. */
    private static DType onCpu(DType type) {
        return type.isScaled() ? DType.FP32 : type;
    }

    List<RankReport> launch(Inputs inputs, Progress progress, RoundListener listener)
            throws IOException {
        if (execution.place().launcher() == Launcher.PROCESSES) {
            TemporaryFiles.watch(options.problem.dataDir);
            int ranks = inputs.problem().ranks();
            try {
                return new ProcessLauncher<>(
                                arguments,
                                ranks,
                                execution.deadline(),
                                RankReport.FILE,
                                listener == null
                                        ? null
                                        : new ProcessLauncher.Live<>(
                                                RankReport.LIVE, listener::round),
                                progress)
                        .run();
            } catch (UsageException e) {
                if (inputs.request().hasOwnAlgorithm()) {
                    // Its plans depend on the engine: only ranks have asked for them.
                    throw e;
                }
                // Everything was checked before: if a rank refuses, something has changed since.
                throw new RunFailedException(e.getMessage());
            }
        }
        if (execution.place().hostPeers()) {
            return List.of(new RankRun(inputs, progress, listener).run(null));
        }
        try (World world = World.threads(inputs.problem().ranks(), execution.deadline())) {
            return world.call(
                    fabric ->
                            new RankRun(inputs, progress.ofRank(fabric.rank()), listener)
                                    .run(fabric));
        }
    }
}
