package dev.weft.compat.command;

import dev.weft.cli.AddOnCommand;
import dev.weft.cli.console.Console;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.TextTarget;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.data.CommandFiles;
import dev.weft.cli.data.Room;
import dev.weft.cli.options.DeadlineOption;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ExecutionSpec.Launcher;
import dev.weft.cli.options.LauncherOptions;
import dev.weft.cli.options.OptionValues;
import dev.weft.cli.options.ReportOptions;
import dev.weft.cli.options.RhsOption;
import dev.weft.cli.options.RoundsOptions;
import dev.weft.cli.run.CudaRules;
import dev.weft.cli.run.Records;
import dev.weft.cli.simulate.PredictedViews;
import dev.weft.cli.simulate.PricedGroups;
import dev.weft.cli.simulate.SimRules;
import dev.weft.cli.view.ReportFiles;
import dev.weft.cli.view.TimelinePicture;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.plan.GatherWriter;
import dev.weft.plan.Hosts;
import dev.weft.plan.cut.Cut;
import dev.weft.report.CallSpans;
import dev.weft.report.RunRecord;
import dev.weft.report.ShownRun;
import dev.weft.report.Verification;
import dev.weft.report.Views;
import dev.weft.search.Candidate;
import dev.weft.search.PlanSearch;
import dev.weft.search.Problem;
import dev.weft.sim.Machine;
import dev.weft.sim.Prediction;
import dev.weft.trace.View;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.Function;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * A command of a source system: what its ranks do, and where its results go. One process prints and
 * writes: the command, or the first rank.
 *
 * @param <R> what the options describe
 */
abstract class SourceCommand<R extends SourceRun> extends WeftCommand implements AddOnCommand {

    private static final String RANKS = "--n-ranks";

    @Option(
            names = {"-n", "--ranks", RANKS},
            paramLabel = "R",
            description =
                    "Ranks of the world, 1 to 4096 (default: ${DEFAULT-VALUE}, or as many as were"
                            + " launched).")
    int ranks;

    @Mixin LauncherOptions launch;

    @Mixin RunModeOptions mode;

    @Mixin RoundsOptions rounds;

    @Option(
            names = "--seed",
            paramLabel = "SEED",
            description = "Seed of the normal data (default: ${DEFAULT-VALUE}).")
    long seed = 19;

    @Mixin DeadlineOption deadline;

    @Option(
            names = "--json",
            paramLabel = "FILE",
            description = "Write the results as JSON; - is standard output.")
    String jsonFile;

    @Mixin ReportOptions reports;

    @Option(names = "--ascii", description = "Draw the timeline in plain ASCII.")
    boolean ascii;

    @Option(names = "--quiet", description = "Print only errors.")
    boolean quiet;

    /** What the options describe, once they have been checked. */
    R run;

    Console console;

    private final String schema;
    private TextTarget json;
    private ReportFiles files;

    /**
     * @param schema the schema of what {@code --json} writes
     */
    SourceCommand(String schema, int ranks, int warmup, int iterations) {
        this.schema = schema;
        this.ranks = ranks;
        this.rounds = new RoundsOptions(warmup, iterations);
    }

    /** The algorithm of a group, by its name in records. */
    abstract GatherWriter algorithm(List<Integer> group);

    /** What the options describe, checked as far as possible before the ranks exist. */
    abstract R run(int count, Arena arena);

    /** How many ranks the source's other settings ask for; used if -n is not given. */
    OptionalInt ranksOtherwise() {
        return OptionalInt.empty();
    }

    /** How a group's part of the problem is priced. */
    abstract PlanSearch search(List<Integer> group);

    /**
     * A search with gathered A kept; {@code columns} of each product, empty for a gather without
     * one.
     */
    final PlanSearch search(List<Integer> group, List<Long> columns, int lanes, Cut cut) {
        return new PlanSearch(
                SimRules.machine(mode.machine),
                new Problem(
                        run.shards(group),
                        run.k(),
                        columns,
                        run.type(),
                        run.type(),
                        true,
                        0,
                        lanes,
                        cut,
                        null,
                        Map.of(),
                        null));
    }

    Candidate chosen(PlanSearch search, List<Integer> group) {
        return search.candidate(algorithm(group));
    }

    Views predicted(PlanSearch search, Candidate chosen, Prediction call) {
        return PredictedViews.of(search, chosen, call);
    }

    private PricedGroups priced(int count) {
        return PricedGroups.of(run.groups(), count, this::search, this::price);
    }

    private PricedGroups.Priced price(PlanSearch search, List<Integer> group) {
        Candidate chosen = chosen(search, group);
        Prediction call = search.price(chosen, View.PIPELINED);
        return new PricedGroups.Priced(search, chosen, call, predicted(search, chosen, call));
    }

    /**
     * Prints and {@linkplain #write writes} what was found.
     *
     * @param reports by rank; empty if it was simulated
     */
    abstract void tell(RunRecord record, List<SourceReport> reports) throws IOException;

    /** A rank's line, which reports a failure. */
    abstract String line(SourceReport report);

    @Override
    public final Integer call() throws IOException {
        MpiEnvironment mpi = MpiEnvironment.current();
        int mpiRank = mpi.rank().orElse(0);
        RankJob job = new RankJob(this);
        int count;
        try (Arena arena = Arena.ofShared()) {
            mode.check(spec);
            rounds.check();
            boolean byMpi = launch.startOrJoin() == Launcher.MPI;
            OptionalInt launched = byMpi ? mpi.size() : OptionalInt.empty();
            boolean decided = launched.isPresent() || job.joins() || areRanksGiven();
            count = ranks(decided ? launched : ranksOtherwise());
            if (!job.joins()) {
                prepare(count, arena);
                if (!mode.simulated() && !byMpi) {
                    Room.checkMemory(run.leastBytes());
                }
            } else if (!RankJob.REPORT.isAskedFor()) {
                DeadlineOption.refuseJoined(spec);
            }
            if (mpiRank == 0 && !RankJob.REPORT.isAskedFor()) {
                openOutputs();
            }
            if (mode.machine != null) {
                SimRules.machine(mode.machine);
            }
            if (mode.cuda()) {
                CudaRules.requireGpu();
            }
        } catch (UsageException | IllegalArgumentException e) {
            // All ranks have the same command line: only one of them says what is wrong with it.
            if (mpiRank > 0) {
                return ExitCode.USAGE;
            }
            throw e;
        }
        if (mode.simulated()) {
            simulate(count);
            return 0;
        }
        return job.start(count, arguments(), out());
    }

    /** Prepares the part of this process's ranks, one of {@code count} or all of them. */
    final R prepare(int count, Arena arena) {
        run = run(ranks(OptionalInt.of(count)), arena);
        return run;
    }

    private void openOutputs() {
        json = TextTarget.json(jsonFile, out());
        files = new ReportFiles(reports);
        new CommandFiles()
                .reads("--hostfile", launch.hostfile)
                .readsMachine(mode.machine)
                .writes("--json", jsonFile)
                .writes(reports)
                .check();
        console = new Console(out(), quiet || json.toStandardOutput());
    }

    /** Prints what the ranks found, by rank, and returns the exit code. */
    final int finish(Hosts hosts, List<SourceReport> all) throws IOException {
        List<SourceReport> found =
                all.stream().filter(report -> !run.sitsOut(report.rank())).toList();
        ExecutionSpec execution =
                ExecutionSpec.plain(
                        mode.cuda(),
                        algorithm(run.largest()).label(),
                        launch.startOrJoin(),
                        rounds.warmup(),
                        rounds.iterations(),
                        deadline.value);
        RunRecord record =
                Records.of(
                        problem(all.size()),
                        flopsPerRank(),
                        run.groups(),
                        rank -> run.m(),
                        execution,
                        null,
                        execution.place().peers(),
                        hosts,
                        all.stream().map(SourceReport::run).toList(),
                        found.stream()
                                .map(SourceReport::judged)
                                .reduce(Verification::and)
                                .orElseThrow());
        if (mode.machine != null) {
            PricedGroups.Priced slowest = priced(all.size()).slowest();
            String machine = slowest.search().machine().name();
            record = record.beside(new RunRecord.Predicted(machine, slowest.views()));
        }
        tell(record, found);
        return exitCode(
                err(), found.stream().filter(report -> !report.passed()).map(this::line).toList());
    }

    /**
     * The exit code; prints a failure in one line, even with {@code --quiet}.
     *
     * @param failures what is wrong, each in one line
     */
    static int exitCode(PrintWriter err, List<String> failures) {
        if (failures.isEmpty()) {
            return 0;
        }
        int others = failures.size() - 1;
        String more = others == 0 ? "" : "; and " + others + " more";
        return ExitCode.ofWrongResult(" (" + failures.getFirst() + more + ")", err);
    }

    private boolean areRanksGiven() {
        return spec.commandLine().getParseResult().hasMatchedOption(RANKS);
    }

    /**
     * The launcher of ranks decides how many there are; -n may only confirm it.
     *
     * @param launched how many were launched, if they were
     */
    private int ranks(OptionalInt launched) {
        OptionValues.ranks(ranks);
        if (areRanksGiven() && launched.isPresent() && launched.getAsInt() != ranks) {
            throw new UsageException(
                    "--n-ranks %s: %s ranks were launched, expected the same number, or no -n",
                    ranks, launched.getAsInt());
        }
        return launched.orElse(ranks);
    }

    /** Prints what the machine would do. */
    private void simulate(int count) throws IOException {
        PricedGroups priced = priced(count);
        Machine machine = priced.slowest().search().machine();
        console.info("Simulated on " + machine.name() + ": " + machine.description());
        priced.tell(console);
        tell(
                Records.simulated(
                        problem(count),
                        flopsPerRank(),
                        algorithm(run.largest()).label(),
                        null,
                        priced,
                        null,
                        wantsSpans()),
                List.of());
    }

    private RunRecord.Problem problem(int count) {
        String type = run.type().label();
        return new RunRecord.Problem(
                count,
                run.groups().count(),
                run.m() * run.ranks(),
                run.k(),
                run.n(),
                type,
                type,
                type,
                RhsOption.label(!run.ownB()),
                run.ownB(),
                "normal",
                seed,
                RunRecord.Problem.lists(run.groups(), count),
                null,
                RunRecord.Problem.GATHER,
                null,
                null);
    }

    private double flopsPerRank() {
        return 2.0 * run.m() * run.ranks() * run.k() * run.cols();
    }

    static String count(int number, String what) {
        return number + " " + what + (number == 1 ? "" : "s");
    }

    /** Whether anything besides the summary needs the spans of every rank. */
    private boolean wantsSpans() {
        return jsonFile != null || reports.wanted() || !console.quiet();
    }

    /** Draws the call and writes the requested files. */
    final void write(
            RunRecord record, TextTarget.JsonFields content, Function<CallSpans, ShownRun> shown)
            throws IOException {
        CallSpans call = CallSpans.of(record);
        String what = record.simulated() ? "one call" : "a measured call";
        TimelinePicture.draw(console, what, call, ascii);
        json.writeJson(
                generator -> {
                    generator.writeStringField("schema", schema);
                    generator.writeBooleanField("simulated", record.simulated());
                    content.write(generator);
                });
        if (reports.wanted()) {
            files.write(shown.apply(call), console);
        }
    }
}
