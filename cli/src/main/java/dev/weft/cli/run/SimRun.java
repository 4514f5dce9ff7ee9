package dev.weft.cli.run;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.data.EpilogueData;
import dev.weft.cli.data.FolderLock;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.options.RunRequest;
import dev.weft.cli.run.RunOptions.Inputs;
import dev.weft.cli.simulate.PredictedViews;
import dev.weft.cli.simulate.PricedGroups;
import dev.weft.cli.simulate.SimRules;
import dev.weft.plan.Algorithm;
import dev.weft.plan.Hosts;
import dev.weft.plan.cut.Cut;
import dev.weft.report.RunRecord;
import dev.weft.report.Verification;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.search.PlanSearch.Budget;
import dev.weft.sim.Machine;
import dev.weft.sim.Prediction;
import dev.weft.trace.View;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.ParseResult;

/**
 * {@code weft run -r sim}: prices the views of a problem on a machine model, with the summary and
 * the record of a real run. The same plan also runs on the CPU, for its product and not for its
 * times, if that takes only seconds or {@code --verify} asks for it.
 */
final class SimRun {

    private static final int MOST_LISTED_HOSTS = 8;

    /** At 400 to 590 ns an event (docs/results/prediction.md): under half a second. */
    private static final long QUICK_TRANSFERS = 100_000;

    /** A second or two of products, and about the same to verify them. */
    private static final double QUICK_FLOPS_PER_CORE = 20e9;

    private static final double QUICK_ELEMENTS = 0x1p28;
    private static final int QUICK_RANKS = 64;

    private final RunSteps steps;
    private final RunOptions options;
    private final ExecutionSpec execution;
    private final Map<PlanSearch, List<Candidate>> candidates = new HashMap<>();
    private long pricingNs;

    SimRun(RunSteps steps) {
        this.steps = steps;
        this.options = steps.options();
        this.execution = steps.execution();
    }

    /** Refuses what a simulated run does not do, before anything is priced or written. */
    static void check(RunOptions options, ParseResult given) {
        SimRules.checkSimulated(options.execution.socVersion, given);
        if (options.fromFiles() && Boolean.FALSE.equals(options.verify)) {
            throw new UsageException(
                    "--a %s with --run-mode sim and --no-verify: expected none of the two, since"
                            + " prices need no numbers",
                    options.a);
        }
    }

    /** Refuses options that need --run-mode sim. */
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
            RunRequest request =
                    options.fromFiles()
                            ? options.open(execution, arena).request()
                            : new RunRequest(options.problem.spec(), execution);
            ProblemSpec spec = request.problem();
            options.execution.checkStrict(spec);
            EpilogueData.check(execution.epilogue(), spec);
            requireNoBlocks(spec);
            SimRules.checkSlow(options.slow, spec.ranks());
            String hosts = hosts(machine.hosts(spec.ranks()));
            SimRules.checked(search(machine, request, spec.replicaGroups().groups().getFirst()));
            console.info("Simulated on " + machine.name() + ": " + machine.description());
            steps.tellOfModel(console);
            console.info(spec.ranks() + " ranks (sim" + hosts + "): " + spec.describe());
            if (execution.epilogue() != null) {
                console.info("The times are those without the epilogue, which no model prices");
            }
            PricedGroups priced = price(machine, request);
            PricedGroups.Priced slowest = priced.slowest();
            if (options.explain) {
                explain(slowest, console);
            }
            // The simulation's own time depends on the ranks being alike.
            console.info(
                    "Simulated %d of %d ranks: %,d transfers, %,d events in %.1f s",
                    slowest.call().simulatedRanks(),
                    slowest.search().hosts().ranks(),
                    slowest.call().transfers(),
                    slowest.call().events(),
                    pricingNs / 1e9);
            priced.tell(console);
            Verification verification =
                    verifies(spec) ? verify(slowest.search(), slowest.chosen(), console) : null;
            boolean spans = outputs.wantsSpans() || !console.quiet() && isQuick(slowest.call());
            RunRecord record = Records.simulated(request, priced, verification, spans);
            outputs.write(record);
            return verification == null ? 0 : steps.exitCode(verification);
        }
    }

    /**
     * Whether the product is made and verified: as requested; by default if the inputs are the
     * user's own or it takes only seconds.
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
     * The predicted times of a real run on the machine of {@code --soc-version}, in its slowest
     * group.
     *
     * @throws IllegalArgumentException if that machine cannot run it
     */
    static RunRecord.Predicted predicted(RunSteps steps, RunRequest request) {
        SimRun run = new SimRun(steps);
        requireNoBlocks(request.problem());
        Machine machine = SimRules.machine(run.options.execution.socVersion);
        return new RunRecord.Predicted(
                machine.name(), run.price(machine, request).slowest().views());
    }

    private static void requireNoBlocks(ProblemSpec spec) {
        if (spec.blocks() != null) {
            throw new UsageException(
                    "--b-dtype %s in simulation: expected --run-mode cpu without --soc-version",
                    spec.labelOfB());
        }
    }

    private PricedGroups price(Machine machine, RunRequest request) {
        return PricedGroups.of(
                request.problem().replicaGroups(),
                request.problem().ranks(),
                group -> search(machine, request, group),
                (search, group) -> price(search, request));
    }

    private PricedGroups.Priced price(PlanSearch search, RunRequest request) {
        boolean auto = execution.algorithm().equals(Algorithm.AUTO.label());
        Candidate chosen =
                auto && !search.hasOwnKernel()
                        ? candidates(search).getFirst()
                        : search.candidate(request.writer());
        long start = System.nanoTime();
        Prediction call = search.price(chosen, View.PIPELINED);
        pricingNs += System.nanoTime() - start;
        boolean ofExample =
                execution.hasViewsOfExample() || options.isSimulated() && search.hasOwnKernel();
        return new PricedGroups.Priced(
                search,
                chosen,
                call,
                ofExample
                        ? PredictedViews.ofExample(search, chosen, call)
                        : PredictedViews.of(search, chosen, call));
    }

    private List<Candidate> candidates(PlanSearch search) {
        return candidates.computeIfAbsent(search, one -> one.candidates(Budget.THOROUGH));
    }

    /** Whether simulating every rank takes no time that a user would notice. */
    private static boolean isQuick(Prediction call) {
        return call.transfers() <= QUICK_TRANSFERS;
    }

    private PlanSearch search(Machine machine, RunRequest request, List<Integer> group) {
        return new PlanSearch(machine, request.priced(group, options.slow));
    }

    private static String hosts(Hosts hosts) {
        if (hosts.count() == 1) {
            return "";
        }
        return hosts.count() > MOST_LISTED_HOSTS
                ? ", " + hosts.count() + " hosts of up to " + hosts.size(0)
                : ", hosts of " + hosts;
    }

    private void explain(PricedGroups.Priced priced, Console console) {
        Candidate chosen = priced.chosen();
        List<String> plans = Explanation.plan(priced.search().steps(chosen));
        List<Candidate> all = new ArrayList<>(candidates(priced.search()));
        if (all.stream().noneMatch(chosen::isPlannedAs)) {
            all.add(priced.search().priced(chosen));
            all.sort(Comparator.comparingDouble(Candidate::predictedNs));
        }
        all.replaceAll(one -> one.asChosen(one.isPlannedAs(chosen)));
        List<String> table =
                Explanation.table(all.stream().map(dev.weft.op.Operator.Candidate::of).toList());
        Explanation.print(plans, table, console);
    }

    /** Runs the chosen plan on the CPU, once. */
    private Verification verify(PlanSearch search, Candidate chosen, Console console)
            throws IOException {
        Cut cut =
                chosen.cut().givesRows()
                        ? chosen.cut()
                        : new Cut(search.chunkRows(chosen), 0, chosen.cut().chunkCols());
        RunSteps real =
                steps.with(execution.onCpu(chosen.algorithm().label(), chosen.lanes(), cut));
        Progress progress = Progress.forTerminal(options.quiet);
        try (Arena arena = Arena.ofShared();
                FolderLock lock = new FolderLock(options.problem.dataDir)) {
            Inputs inputs = real.prepare(arena, lock, console, progress);
            console.info("Running warmup... (none, as times are predicted)");
            List<RankReport> reports = real.launch(inputs, progress, null);
            real.stampOutputs(inputs, reports.size());
            return real.verify(inputs, reports, progress);
        } finally {
            progress.end();
        }
    }
}
