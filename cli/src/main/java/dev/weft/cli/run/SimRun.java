package dev.weft.cli.run;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.data.FolderLock;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.simulate.SimCandidate;
import dev.weft.cli.simulate.SimCut;
import dev.weft.cli.simulate.SimProblem;
import dev.weft.cli.simulate.SimRules;
import dev.weft.cli.simulate.SimSearch;
import dev.weft.cli.simulate.SimTimelines;
import dev.weft.cli.simulate.SimViews;
import dev.weft.cli.verify.VerificationExit;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.op.Candidate;
import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.report.RunRecord;
import dev.weft.report.Verification;
import dev.weft.report.Views;
import dev.weft.sim.CoreEngine;
import dev.weft.sim.Machine;
import dev.weft.sim.Part;
import dev.weft.sim.Prediction;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.ParseResult;

/**
 * {@code weft run -r sim}: the views of a problem priced on a machine model, with the summary and
 * the record of a real run. With {@code --verify} the same plan also runs on the CPU, for its
 * product and not for its times.
 */
final class SimRun {

    private static final int MOST_LISTED_HOSTS = 8;

    /** At 400 to 590 ns an event (docs/results/prediction.md): under half a second. */
    private static final long QUICK_TRANSFERS = 100_000;

    /** Options that say how real ranks are started or multiply. */
    private static final List<String> OF_REAL_RANKS =
            List.of(
                    "--launcher",
                    "--hostfile",
                    "--mpi-args",
                    "--peers",
                    "--engine",
                    "--watch",
                    "--npy");

    private final RunSteps steps;
    private final RunOptions options;
    private final ExecutionSpec execution;

    SimRun(RunSteps steps, ExecutionSpec execution) {
        this.steps = steps;
        this.options = steps.options();
        this.execution = execution;
    }

    /** What a simulated run refuses, before anything is priced or written. */
    static void check(RunOptions options, ParseResult given) {
        if (MpiEnvironment.current().launched()) {
            throw new UsageException(
                    "--run-mode sim simulates all ranks in one process: start it without mpirun");
        }
        for (String option : OF_REAL_RANKS) {
            if (given.hasMatchedOption(option)) {
                throw new UsageException(
                        option + " is for real ranks: --run-mode sim simulates them, give none");
            }
        }
        if (options.fromFiles() && !options.verify) {
            throw new UsageException(
                    "--a "
                            + options.a
                            + " with --run-mode sim: expected --verify, since prices need no"
                            + " numbers");
        }
        if (options.problem.groups != 1) {
            throw new UsageException(
                    "--groups "
                            + options.problem.groups
                            + " with --run-mode sim: expected 1, since one group is simulated");
        }
    }

    /** What needs --run-mode sim, in a real run. */
    static void checkReal(RunOptions options) {
        if (!options.slow.isEmpty()) {
            throw new UsageException(
                    "--slow "
                            + options.slow
                            + " slows simulated ranks: it needs --run-mode sim, not "
                            + options.execution.runMode);
        }
    }

    int call() throws IOException {
        RunOutputs outputs = steps.outputs();
        Console console = outputs.console();
        Machine machine = SimRules.machine(options.execution.socVersion);
        SimRules.checkWorkers(machine, execution.computeWorkers());
        try (Arena arena = Arena.ofShared()) {
            ProblemSpec spec =
                    options.fromFiles() ? options.open(arena).problem() : options.problem.spec();
            options.execution.checkStrict(spec);
            SimRules.checkSlow(options.slow, spec.ranks());
            SimProblem problem = problem(machine, spec);
            console.info("Simulated on " + machine.name() + ": " + machine.description());
            console.info(spec.ranks() + " ranks (sim" + hosts(problem) + "): " + spec.describe());
            SimCandidate chosen = choose(problem, console);
            Prediction call = simulated(problem, chosen, console);
            Views views = SimViews.of(problem, chosen, call, baseline(problem, chosen));
            Verification verification = options.verify ? verify(chosen, console) : null;
            SimTimelines timelines =
                    outputs.wantsSpans() || !console.quiet() && isQuick(call)
                            ? SimTimelines.of(problem, chosen)
                            : null;
            RunRecord record =
                    SimRecords.of(spec, problem, execution, chosen, views, verification, timelines);
            outputs.write(record);
            return verification == null
                    ? 0
                    : VerificationExit.exitCode(verification.passed(), verification, steps.err());
        }
    }

    /** Whether another look at every rank costs no time that a user would notice. */
    private static boolean isQuick(Prediction call) {
        return call.transfers() <= QUICK_TRANSFERS;
    }

    private SimProblem problem(Machine machine, ProblemSpec spec) {
        return new SimProblem(
                machine,
                spec.shards(),
                spec.k(),
                spec.cols(0),
                spec.aType(),
                spec.outType(),
                execution.keepGathered(),
                machine.engine() instanceof CoreEngine ? execution.computeWorkers() : 0,
                options.slow);
    }

    private static String hosts(SimProblem problem) {
        int count = problem.hosts().count();
        if (count == 1) {
            return "";
        }
        return count > MOST_LISTED_HOSTS
                ? ", " + count + " hosts of up to " + problem.hosts().size(0)
                : ", hosts of " + problem.hosts();
    }

    /** Says what it took, since that depends on the ranks being alike. */
    private static Prediction simulated(SimProblem problem, SimCandidate chosen, Console console) {
        long start = System.nanoTime();
        Prediction call = problem.price(chosen, Part.WHOLE);
        double seconds = (System.nanoTime() - start) / 1e9;
        console.info(
                String.format(
                        Locale.ROOT,
                        "Simulated %d of %d ranks: %,d transfers, %,d events in %.1f s",
                        call.simulatedRanks(),
                        problem.hosts().ranks(),
                        call.transfers(),
                        call.events(),
                        seconds));
        return call;
    }

    private SimCandidate choose(SimProblem problem, Console console) {
        boolean asked = execution.algorithm() != Algorithm.AUTO || problem.hasOwnKernel();
        SimCut cut = SimCut.of(execution, problem.hasOwnKernel());
        SimSearch search =
                asked && !options.explain
                        ? null
                        : SimSearch.of(problem, cut, execution.commWorkers());
        SimCandidate chosen =
                asked
                        ? problem.candidate(askedAlgorithm(), cut, execution.commWorkers())
                        : search.cheapest().candidate();
        if (options.explain) {
            explain(problem, search, chosen, console);
        }
        return chosen;
    }

    /** Where a machine's own kernel decides, auto is what that does. */
    private PlanWriter askedAlgorithm() {
        return execution.algorithm() == Algorithm.AUTO
                ? Algorithm.MESH_PUSH
                : execution.algorithm();
    }

    private static void explain(
            SimProblem problem, SimSearch search, SimCandidate chosen, Console console) {
        List<SimCandidate.Priced> priced = new ArrayList<>(search.priced());
        if (priced.stream().noneMatch(one -> one.candidate().equals(chosen))) {
            priced.add(problem.price(chosen));
            priced.sort(Comparator.comparingDouble(SimCandidate.Priced::ns));
        }
        new Explanation(priced.stream().map(one -> line(one, chosen)).toList()).print(console);
    }

    private static Candidate line(SimCandidate.Priced priced, SimCandidate chosen) {
        SimCandidate candidate = priced.candidate();
        return new Candidate(
                candidate.algorithm(),
                candidate.chunksPerSource(),
                priced.ns(),
                Double.NaN,
                candidate.equals(chosen));
    }

    /** What the call is compared with: the same chunks, or the best ones where none are given. */
    private SimCandidate baseline(SimProblem problem, SimCandidate chosen) {
        SimCut cut = SimCut.of(execution, problem.hasOwnKernel());
        if (cut.isGiven() || problem.hasOwnKernel()) {
            return problem.candidate(Algorithm.SEQUENTIAL, chosen.cut(), execution.commWorkers());
        }
        return SimSearch.sequential(problem, execution.commWorkers()).candidate();
    }

    /** The chosen plan on the CPU, once. */
    private Verification verify(SimCandidate chosen, Console console) throws IOException {
        SimCut cut = chosen.cut();
        ExecutionSpec real =
                execution.onCpu(
                        chosen.algorithm(),
                        chosen.lanes(),
                        cut.isGiven() ? cut.chunkRows() : chosen.chunkRows(),
                        cut.chunkCols(),
                        cut.splitsPerRank(),
                        cut.ascendTiles());
        Progress progress = Progress.forTerminal(options.quiet);
        try (Arena arena = Arena.ofShared();
                FolderLock lock = new FolderLock(options.problem.dataDir)) {
            RunOptions.Inputs inputs = steps.prepare(real, arena, lock, console, progress);
            List<RankReport> reports = steps.launch(inputs, real, progress, null);
            inputs.folder()
                    .stampOutputs(reports.size(), RunSteps.outputNames(inputs.problem(), real));
            return steps.verify(inputs, real, reports, progress);
        } finally {
            progress.end();
        }
    }
}
