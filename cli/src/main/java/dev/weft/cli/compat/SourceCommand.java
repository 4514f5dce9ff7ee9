package dev.weft.cli.compat;

import static dev.weft.report.Text.text;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.JsonTarget;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.data.CommandFiles;
import dev.weft.cli.launch.Collected;
import dev.weft.cli.launch.Heartbeat;
import dev.weft.cli.launch.MpiCommandLine;
import dev.weft.cli.launch.MpiRank;
import dev.weft.cli.launch.MpiStart;
import dev.weft.cli.launch.ProcessLauncher;
import dev.weft.cli.launch.ProgressFile;
import dev.weft.cli.message.RankFile;
import dev.weft.cli.options.CallOptions;
import dev.weft.cli.options.DeadlineOption;
import dev.weft.cli.options.ExecutionSpec;
import dev.weft.cli.options.ExecutionSpec.Launcher;
import dev.weft.cli.options.LauncherOptions;
import dev.weft.cli.options.RanksOption;
import dev.weft.cli.options.RoundsOptions;
import dev.weft.cli.options.RunModeOptions;
import dev.weft.cli.run.CudaRules;
import dev.weft.cli.simulate.SimRules;
import dev.weft.cli.view.ReportFiles;
import dev.weft.cli.view.TimelinePicture;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.ReplicaGroups;
import dev.weft.fabric.World;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.plan.Hosts;
import dev.weft.plan.PlanWriter;
import dev.weft.report.CallSpans;
import dev.weft.report.RunRecord;
import dev.weft.report.ShownRun;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.OptionalInt;
import java.util.function.Supplier;
import picocli.CommandLine.Mixin;

/**
 * A command of a source system: its ranks, wherever they run and whoever has started them, and
 * where its results go. One process prints and writes: the command, or the first rank.
 */
abstract class SourceCommand extends WeftCommand {

    private static final RankFile<SourceReport> REPORT =
            new RankFile<>("WEFT_REPORT", "report", SourceReport.class, Integer.MAX_VALUE);

    @Mixin RanksOption ranks;

    @Mixin LauncherOptions launch;

    @Mixin RunModeOptions mode;

    @Mixin RoundsOptions rounds;

    @Mixin CallOptions options = new CallOptions();

    private JsonTarget json;
    private ReportFiles files;
    private Console console;

    SourceCommand(int ranks, int warmup, int iterations) {
        this.ranks = new RanksOption(ranks);
        this.rounds = new RoundsOptions(warmup, iterations);
    }

    /** What the command asks for, by its name in records. */
    abstract PlanWriter algorithm();

    /** One rank's part. */
    interface Job {
        SourceReport run(Fabric world, Progress progress) throws IOException;
    }

    /** What the options ask for, checked as far as that is possible before the ranks are there. */
    abstract Job job(int count, Arena arena);

    /** Prints what the ranks found and writes the files that are asked for. */
    abstract int finish(Hosts hosts, List<SourceReport> reports) throws IOException;

    /** Prints and writes what the machine would do. */
    abstract void simulate(int count) throws IOException;

    @Override
    public final Integer call() throws IOException {
        MpiEnvironment mpi = MpiEnvironment.current();
        int mpiRank = mpi.rank().orElse(0);
        Launcher start;
        int count;
        try (Arena arena = Arena.ofShared()) {
            mode.check(spec);
            start = launch.startOrJoin();
            boolean joins = launch.isJoined() || REPORT.isAskedFor();
            count = ranks.of(spec, start == Launcher.MPI ? mpi.size() : OptionalInt.empty());
            if (!joins) {
                job(count, arena);
            }
            if (mpiRank == 0 && !REPORT.isAskedFor()) {
                openOutputs();
            }
            if (mode.machine != null) {
                SimRules.machine(mode.machine);
            }
            if (mode.cuda()) {
                CudaRules.requireGpu();
            }
        } catch (UsageException | IllegalArgumentException e) {
            // All ranks have the same command line: one of them tells what is wrong with it.
            if (mpiRank > 0) {
                return ExitCode.USAGE;
            }
            throw e;
        }
        if (mode.simulated()) {
            simulate(count);
            return 0;
        }
        if (REPORT.isAskedFor() || launch.isJoined()) {
            return join();
        }
        return switch (start) {
            case THREADS -> runThreads(count);
            case PROCESSES -> startProcesses(count);
            case MPI ->
                    mpi.launched()
                            ? MpiRank.call(options.deadline.value, this::asRank)
                            : startMpi(count);
        };
    }

    private void openOutputs() {
        json = new JsonTarget(options.json, out());
        files = new ReportFiles(options.reports);
        new CommandFiles()
                .reads("--hostfile", launch.hostfile)
                .readsMachine(mode.machine)
                .writes("--json", options.json)
                .writes(options.reports)
                .check();
        console = new Console(out(), options.quiet || json.toStandardOutput());
    }

    private int runThreads(int count) throws IOException {
        Progress progress = Progress.forTerminal(options.quiet);
        List<SourceReport> reports;
        try (Arena arena = Arena.ofShared();
                World world = World.threads(count, options.deadline.value)) {
            Job job = job(count, arena);
            reports = world.call(fabric -> job.run(fabric, progress.ofRank(fabric.rank())));
        } finally {
            progress.end();
        }
        return finish(Hosts.one(count), reports);
    }

    private int startProcesses(int count) throws IOException {
        return finish(
                Hosts.one(count),
                new ProcessLauncher<>(
                                arguments(),
                                count,
                                options.deadline.value,
                                REPORT,
                                null,
                                Progress.forTerminal(options.quiet))
                        .run());
    }

    private int startMpi(int count) throws IOException {
        MpiCommandLine command =
                new MpiCommandLine(launch.hostfile, launch.mpiArgs, count, arguments());
        return new MpiStart(command, count, options.deadline.value, out()).run();
    }

    /** This process is a rank that this command, 'weft launch' or torchrun has started. */
    private int join() {
        if (!REPORT.isAskedFor()) {
            DeadlineOption.refuseJoined(spec);
        }
        try (World world = World.joined()) {
            return world.call(this::asRank).getFirst();
        }
    }

    /** A rank whose process is its own; the exit code is the same on all. */
    private int asRank(Fabric world) throws IOException {
        int rank = world.rank();
        Progress progress =
                ProgressFile.isAskedFor()
                        ? ProgressFile.ofRank(rank)
                        : Progress.forTerminal(options.quiet).ofRank(rank);
        SourceReport report;
        try (Arena arena = Arena.ofShared()) {
            int count = ranks.of(spec, OptionalInt.of(world.size()));
            report = job(count, arena).run(world, progress);
        } catch (UsageException | IllegalArgumentException e) {
            // Of what all refuse alike, one tells.
            if (rank > 0 && !REPORT.isAskedFor()) {
                return ExitCode.USAGE;
            }
            throw e;
        } finally {
            progress.end();
        }
        if (REPORT.isAskedFor()) {
            REPORT.write(report);
            return 0;
        }
        List<SourceReport> all = Collected.atFirst(world, report);
        int code = 0;
        if (rank == 0) {
            code = Heartbeat.during(world, () -> finish(world.hosts(), all));
            MpiRank.tellExit(code);
        }
        return (int) world.exchange(code)[0];
    }

    final Console console() {
        return console;
    }

    /** How the ranks ran, as records have it. */
    final ExecutionSpec execution() {
        return ExecutionSpec.plain(
                mode.cuda(),
                algorithm(),
                launch.startOrJoin(),
                rounds.warmup(),
                rounds.iterations(),
                options.deadline.value);
    }

    final String where(int count, Hosts hosts) {
        return "%s (%s%s) on the %s"
                .formatted(
                        count(count, "rank"),
                        execution().launcher(),
                        hosts.count() > 1 ? ", hosts of " + hosts : "",
                        mode.cuda() ? "GPU" : "CPU");
    }

    static String count(int number, String what) {
        return number + " " + what + (number == 1 ? "" : "s");
    }

    /** Whether anything but the summary wants to know what every rank did. */
    final boolean wantsSpans() {
        return options.json != null || options.reports.wanted() || !console.quiet();
    }

    /** Draws the call and writes the files that are asked for. */
    final void write(CallSpans call, JsonTarget.Content content, Supplier<ShownRun> shown)
            throws IOException {
        if (!console.quiet() && !call.ranks().isEmpty()) {
            String what = mode.simulated() ? "one call" : "the last call";
            console.line("Timeline:", text("%s of %.3f ms", what, call.endNs() / 1e6));
            TimelinePicture.forTerminal(call, options.ascii).lines().forEach(console::draw);
        }
        json.write(content);
        if (options.reports.wanted()) {
            files.write(shown.get(), console);
        }
    }

    /** Times start at the first rank's start. */
    static List<RunRecord.Rank> spans(
            List<SourceReport> reports, ReplicaGroups groups, long shardRows) {
        long originNs = reports.stream().mapToLong(one -> one.timeline().startNs()).min().orElse(0);
        return reports.stream()
                .map(
                        one ->
                                new RunRecord.Rank(
                                        one.rank(),
                                        group(groups, one.rank()),
                                        shardRows,
                                        one.run().chunkRows(),
                                        one.timeline().since(originNs)))
                .toList();
    }

    /** A rank in no group has a number of its own, after those of the groups. */
    private static int group(ReplicaGroups groups, int rank) {
        int group = groups.groupOf(rank);
        return group < 0 ? groups.count() + rank : group;
    }
}
