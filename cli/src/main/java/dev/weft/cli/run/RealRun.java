package dev.weft.cli.run;

import dev.weft.cli.console.Console;
import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.data.FolderLock;
import dev.weft.cli.launch.Collected;
import dev.weft.cli.launch.Heartbeat;
import dev.weft.cli.launch.MpiRank;
import dev.weft.cli.options.ExecutionSpec.Launcher;
import dev.weft.cli.options.ProblemSpec;
import dev.weft.cli.run.RunOptions.Inputs;
import dev.weft.cli.view.LivePage;
import dev.weft.cli.view.LiveProgress;
import dev.weft.fabric.Fabric;
import dev.weft.plan.Hosts;
import dev.weft.report.Verification;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * A run on real ranks: threads or processes that this command starts, or one rank that MPI has
 * started. Every rank of MPI runs the same command line. The first rank of each host takes care of
 * the data folder there, which hosts may share, and checks the outputs of its host. The first rank
 * of all collects all reports and is the only one that prints.
 */
record RealRun(RunSteps steps) {

    /**
     * What a rank of MPI sends to the first one.
     *
     * @param judged the verdict on the outputs of all ranks of its host; null if another rank
     *     checks them
     */
    private record RankResult(RankReport report, Verification judged) {}

    int call() throws IOException {
        return steps.execution().place().launcher() == Launcher.MPI
                ? MpiRank.call(steps.execution().deadline(), this::run)
                : run(null);
    }

    /**
     * @param world null unless this is a rank of MPI
     */
    private int run(Fabric world) throws IOException {
        RunOptions options = steps.options();
        boolean first = world == null || world.rank() == 0;
        if (world != null) {
            options.problem.ranks = world.size();
        }
        RunOutputs outputs = first ? steps.outputs() : null;
        Console console = first ? outputs.console() : new Console(steps.out(), true);
        Progress terminal = first ? Progress.forTerminal(options.quiet) : new Progress(false);
        try (LivePage page =
                LivePage.open(first && options.watch, options.title(), console, steps.err())) {
            Progress progress = page == null ? terminal : new LiveProgress(terminal, page);
            try {
                return run(world, outputs, console, progress, page);
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
     * @param outputs null on ranks that print nothing
     * @param page null if there is no live page here
     */
    private int run(
            Fabric world, RunOutputs outputs, Console console, Progress progress, LivePage page)
            throws IOException {
        try (Arena arena = Arena.ofShared();
                FolderLock lock = lock(world)) {
            Inputs inputs = inputs(world, arena, lock, console, progress);
            if (inputs == null) {
                return ExitCode.USAGE;
            }
            ProblemSpec problem = inputs.problem();
            Hosts hosts = world == null ? Hosts.one(problem.ranks()) : world.hosts();
            console.info(steps.ranks(problem, hosts) + ": " + problem.describe());
            if (steps.execution().place().launcher() == Launcher.THREADS) {
                readAll(inputs);
            }
            if (outputs != null) {
                Runnable heartbeat = world == null ? () -> {} : world::worked;
                steps.storeModel(inputs.request(), heartbeat, console);
            }
            console.info("Running warmup...");
            if (world != null) {
                return asRank(world, inputs, outputs, progress, page);
            }
            int reporters = steps.execution().place().hostPeers() ? 1 : problem.ranks();
            List<RankReport> reports =
                    steps.launch(
                            inputs, progress, LiveRun.on(page, inputs.request(), hosts, reporters));
            steps.stampOutputs(inputs, reports.size());
            Verification verification = steps.verify(inputs, reports, progress);
            return steps.finish(outputs, page, inputs, hosts, reports, verification);
        }
    }

    /** The first rank of a host takes the lock; hosts that share a folder know their own run. */
    private FolderLock lock(Fabric world) {
        boolean first = world == null || world.rank() == 0;
        long run = first ? FolderLock.newRun() : 0;
        return new FolderLock(
                steps.options().problem.dataDir, world == null ? run : world.exchange(run)[0]);
    }

    /**
     * Host by host, since all hosts may share one folder.
     *
     * @return null if a rank has refused, and has said why
     */
    private Inputs inputs(
            Fabric world, Arena arena, FolderLock lock, Console console, Progress progress)
            throws IOException {
        if (world == null) {
            return steps.prepare(arena, lock, console, progress);
        }
        Hosts hosts = world.hosts();
        for (int host = 0; host < hosts.count(); host++) {
            boolean refused = false;
            if (world.rank() == hosts.first(host)) {
                try {
                    Heartbeat.during(world, () -> steps.prepare(arena, lock, console, progress));
                } catch (UsageException | IllegalArgumentException e) {
                    ErrorMessage.print(steps.err(), ErrorMessage.of(e));
                    refused = true;
                }
            }
            // All ranks end alike: if thrown, every other rank would report it as a failure, too.
            if (world.exchange(refused ? 1 : 0)[hosts.first(host)] == 1) {
                return null;
            }
        }
        return steps.options().open(steps.execution(), arena);
    }

    /** From now on, changes to the files do not affect ranks of this process. */
    private static void readAll(Inputs inputs) {
        IntStream.range(0, inputs.problem().ranks())
                .parallel()
                .forEach(
                        rank -> {
                            inputs.operands().shard(rank);
                            inputs.operands().b(rank);
                        });
    }

    /** Runs one rank of MPI and reports to the first one; the exit code is the same on all. */
    private int asRank(
            Fabric world, Inputs inputs, RunOutputs outputs, Progress progress, LivePage page)
            throws IOException {
        // If there is a viewer, all ranks report their rounds; only the first rank shows them.
        RoundListener live = LiveRun.on(page, inputs.request(), world.hosts(), 1);
        boolean silent = live == null && steps.options().watch;
        RankReport report =
                new RankRun(inputs, progress, silent ? (rank, soFar) -> {} : live).run(world);
        Verification judged = judge(world, inputs, report, progress);
        List<RankResult> results = Collected.atFirst(world, new RankResult(report, judged));
        int code = 0;
        if (world.rank() == 0) {
            code = Heartbeat.during(world, () -> finish(world, inputs, results, outputs, page));
            MpiRank.tellExit(code);
        }
        if (page != null) {
            // The page's viewer may need some seconds, while the other ranks wait.
            Heartbeat.during(
                    world,
                    () -> {
                        page.awaitReaders();
                        return null;
                    });
        }
        // All ranks end alike, so that the launcher reports one exit code.
        return (int) world.exchange(code)[0];
    }

    /** The first rank of a host checks for all of its ranks; the others return null. */
    private Verification judge(Fabric world, Inputs inputs, RankReport report, Progress progress)
            throws IOException {
        int rank = world.rank();
        Hosts hosts = world.hosts();
        boolean alike = isSame(world, report.device().hashCode());
        long[] exact = world.exchange(report.gatheredExact() ? 1 : 0);
        long[] equal = world.exchange(report.keptEqual() ? 1 : 0);
        long[] bound = world.exchange(report.keptWithinBound() ? 1 : 0);
        int host = hosts.hostOf(rank);
        if (rank != hosts.first(host)) {
            world.barrier();
            return null;
        }
        int end = rank + hosts.size(host);
        Verification judged =
                Heartbeat.during(
                        world,
                        () ->
                                steps.verifier(inputs, report, alike, progress)
                                        .verify(
                                                all(exact, rank, end),
                                                all(equal, rank, end),
                                                all(bound, rank, end),
                                                rank,
                                                end));
        world.barrier();
        steps.stampOutputs(inputs, world.size());
        return judged;
    }

    private static boolean isSame(Fabric world, long value) {
        return Arrays.stream(world.exchange(value)).allMatch(other -> other == value);
    }

    private static boolean all(long[] answers, int from, int end) {
        return Arrays.stream(answers, from, end).allMatch(answer -> answer == 1);
    }

    private int finish(
            Fabric world,
            Inputs inputs,
            List<RankResult> results,
            RunOutputs outputs,
            LivePage page)
            throws IOException {
        List<RankReport> reports = results.stream().map(RankResult::report).toList();
        Verification verification =
                results.stream()
                        .map(RankResult::judged)
                        .filter(Objects::nonNull)
                        .reduce(Verification::and)
                        .orElseThrow();
        return steps.finish(outputs, page, inputs, world.hosts(), reports, verification);
    }
}
