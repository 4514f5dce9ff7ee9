package dev.weft.cli.run;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.data.FolderLock;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.RunModeOptions;
import dev.weft.cli.run.RunOptions.Inputs;
import dev.weft.cli.simulate.PredictedViews;
import dev.weft.cli.simulate.SimRules;
import dev.weft.cli.simulate.SimTimelines;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Shards;
import dev.weft.plan.cut.Cut;
import dev.weft.report.RunRecord;
import dev.weft.report.Verification;
import dev.weft.report.Views;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.search.PlanSearch.Budget;
import dev.weft.search.Problem;
import dev.weft.sim.Machine;
import dev.weft.sim.Prediction;
import dev.weft.sim.SimulatedView;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import picocli.CommandLine.ParseResult;

/**
 * {@code weft run -r sim}: the views of a problem priced on a machine model, with the summary and
 * the record of a real run. The same plan also runs on the CPU, for its product and not for its
 * times: where that takes seconds, or {@code --verify} asks for it.
 */
final class SimRun {

    private static final int MOST_LISTED_HOSTS = 8;

    /** At 400 to 590 ns an event (docs/results/prediction.md): under half a second. */
    private static final long QUICK_TRANSFERS = 100_000;

    /** A second or two of products, and as much again to verify them. */
    private static final double QUICK_FLOPS_PER_CORE = 20e9;

    private static final double QUICK_ELEMENTS = 0x1p28;
    private static final int QUICK_RANKS = 64;

    private final RunSteps steps;
    private final RunOptions options;
    private final ExecutionSpec execution;

    SimRun(RunSteps steps) {
        this.steps = steps;
        this.options = steps.options();
        this.execution = steps.execution();
    }

    /** What a simulated run refuses, before anything is priced or written. */
    static void check(RunOptions options, ParseResult given) {
        RunModeOptions.checkSimulated(options.execution.socVersion, given);
        if (options.fromFiles() && Boolean.FALSE.equals(options.verify)) {
            throw new UsageException(
                    "--a %s with --run-mode sim and --no-verify: expected none of the two, since"
                            + " prices need no numbers",
                    options.a);
        }
        options.problem.groups.refuseSimulated(options.problem.ranks);
    }

    /** What needs --run-mode sim, in a real run. */
    static void checkReal(RunOptions options) {
        if (!options.slow.isEmpty()) {
            throw new UsageException(
                    "--slow %s slows simulated ranks: it needs --run-mode sim, not %s",
                    options.slow, options.execution.runMode);
        }
        if (Boolean.FALSE.equals(options.verify)) {
            throw new UsageException(
                    "--no-verify with --run-mode %s: real runs are verified, expected --run-mode"
                            + " sim or no --no-verify",
                    options.execution.runMode);
        }
        if (options.execution.socVersion != null) {
            SimRules.machine(options.execution.socVersion);
        }
    }

    int call() throws IOException {
        RunOutputs outputs = steps.outputs();
        Console console = outputs.console();
        Machine machine = SimRules.machine(options.execution.socVersion);
        try (Arena arena = Arena.ofShared()) {
            ProblemSpec spec =
                    options.fromFiles() ? options.open(arena).problem() : options.problem.spec();
            options.execution.checkStrict(spec);
            SimRules.checkSlow(options.slow, spec.ranks());
            PlanSearch search = search(machine, spec, 0);
            console.info("Simulated on " + machine.name() + ": " + machine.description());
            console.info(
                    spec.ranks() + " ranks (sim" + hosts(search.hosts()) + "): " + spec.describe());
            Candidate chosen = choose(search, console);
            Prediction call = simulated(search, chosen, console);
            Views views = PredictedViews.of(search, chosen, call);
            Verification verification = verifies(spec) ? verify(search, chosen, console) : null;
            SimTimelines timelines =
                    outputs.wantsSpans() || !console.quiet() && isQuick(call)
                            ? SimTimelines.of(search, chosen)
                            : null;
            RunRecord record =
                    Records.simulated(
                            spec, search, execution, chosen, views, verification, timelines);
            outputs.write(record);
            return verification == null ? 0 : steps.exitCode(verification);
        }
    }

    /**
     * Whether the product is made and verified: as asked, otherwise if it is the user's own or a
     * matter of seconds.
     */
    private boolean verifies(ProblemSpec spec) {
        if (options.verify != null) {
            return options.verify;
        }
        double cores = Runtime.getRuntime().availableProcessors();
        boolean quick =
                spec.ranks() * spec.flopsPerRank() <= cores * QUICK_FLOPS_PER_CORE
                        && (double) spec.ranks() * spec.m() * spec.n() <= QUICK_ELEMENTS
                        && spec.ranks() <= QUICK_RANKS;
        return quick || options.fromFiles();
    }

    /**
     * What the machine of {@code --soc-version} would take for a real run, in its slowest group.
     *
     * @throws IllegalArgumentException where it cannot run that
     */
    static RunRecord.Predicted predicted(RunSteps steps, ProblemSpec spec) {
        SimRun run = new SimRun(steps);
        Machine machine = SimRules.machine(run.options.execution.socVersion);
        return spec.replicaGroups().groups().stream()
                .collect(Collectors.toMap(List::size, List::getFirst, (one, other) -> one))
                .values()
                .stream()
                .map(rank -> run.predicted(run.search(machine, spec, rank)))
                .max(Comparator.comparingDouble(group -> group.views().pipelined().median()))
                .orElseThrow();
    }

    private RunRecord.Predicted predicted(PlanSearch search) {
        Candidate chosen = chosen(search, List.of());
        Prediction call = search.price(chosen, SimulatedView.PIPELINED);
        return new RunRecord.Predicted(
                search.machine().name(), PredictedViews.of(search, chosen, call));
    }

    /** Whether another look at every rank costs no time that a user would notice. */
    private static boolean isQuick(Prediction call) {
        return call.transfers() <= QUICK_TRANSFERS;
    }

    /** For the group of a rank. */
    private PlanSearch search(Machine machine, ProblemSpec spec, int rank) {
        Shards shards = spec.shards(rank);
        return SimRules.search(
                machine,
                new Problem(
                        shards,
                        spec.k(),
                        List.of(spec.cols(rank)),
                        spec.aType(),
                        spec.outType(),
                        execution.keepGathered(),
                        execution.computeWorkers(),
                        execution.commWorkers(),
                        execution.cut(shards, spec.k()),
                        null,
                        options.slow));
    }

    private static String hosts(Hosts hosts) {
        if (hosts.count() == 1) {
            return "";
        }
        return hosts.count() > MOST_LISTED_HOSTS
                ? ", " + hosts.count() + " hosts of up to " + hosts.size(0)
                : ", hosts of " + hosts;
    }

    /** Says what it took, since that depends on the ranks being alike. */
    private static Prediction simulated(PlanSearch search, Candidate chosen, Console console) {
        long start = System.nanoTime();
        Prediction call = search.price(chosen, SimulatedView.PIPELINED);
        double seconds = (System.nanoTime() - start) / 1e9;
        console.info(
                text(
                        "Simulated %d of %d ranks: %,d transfers, %,d events in %.1f s",
                        call.simulatedRanks(),
                        search.hosts().ranks(),
                        call.transfers(),
                        call.events(),
                        seconds));
        return call;
    }

    private Candidate choose(PlanSearch search, Console console) {
        if (!options.explain) {
            return chosen(search, List.of());
        }
        List<Candidate> priced = search.candidates(Budget.THOROUGH);
        Candidate chosen = chosen(search, priced);
        explain(search, priced, chosen, console);
        return chosen;
    }

    /**
     * @param priced all candidates, or none where nobody has priced them yet
     */
    private Candidate chosen(PlanSearch search, List<Candidate> priced) {
        if (execution.algorithm() != Algorithm.AUTO || search.hasOwnKernel()) {
            return search.candidate(askedAlgorithm());
        }
        return (priced.isEmpty() ? search.candidates(Budget.THOROUGH) : priced).getFirst();
    }

    /** Where a machine's own kernel decides, auto is what that does. */
    private PlanWriter askedAlgorithm() {
        return execution.algorithm() == Algorithm.AUTO
                ? Algorithm.MESH_PUSH
                : execution.algorithm();
    }

    private static void explain(
            PlanSearch search, List<Candidate> priced, Candidate chosen, Console console) {
        List<Candidate> all = new ArrayList<>(priced);
        if (all.stream().noneMatch(chosen::isPlannedAs)) {
            all.add(search.priced(chosen));
            all.sort(Comparator.comparingDouble(Candidate::predictedNs));
        }
        all.replaceAll(one -> one.asChosen(one.isPlannedAs(chosen)));
        Explanation.print(all.stream().map(dev.weft.op.Operator.Candidate::of).toList(), console);
    }

    /** The chosen plan on the CPU, once. */
    private Verification verify(PlanSearch search, Candidate chosen, Console console)
            throws IOException {
        Cut cut =
                chosen.cut().givesRows()
                        ? chosen.cut()
                        : new Cut(search.chunkRows(chosen), 0, chosen.cut().chunkCols());
        RunSteps real = steps.with(execution.onCpu(chosen.algorithm(), chosen.lanes(), cut));
        Progress progress = Progress.forTerminal(options.quiet);
        try (Arena arena = Arena.ofShared();
                FolderLock lock = new FolderLock(options.problem.dataDir)) {
            Inputs inputs = real.prepare(arena, lock, console, progress);
            List<RankReport> reports = real.launch(inputs, progress, null);
            real.stampOutputs(inputs, reports.size());
            return real.verify(inputs, reports, progress);
        } finally {
            progress.end();
        }
    }
}
