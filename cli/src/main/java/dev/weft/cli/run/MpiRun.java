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
import dev.weft.cli.options.ExecutionSpec;
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

/**
 * One rank of a run that MPI has started. Every rank runs the same command line. The first rank of
 * each host takes care of the data folder there, which hosts may share, and checks the outputs of
 * its host. The first rank of all collects all reports and is the only one that prints.
 */
final class MpiRun {

    /**
     * What a rank sends to the first one.
     *
     * @param judged the verdict on the outputs of all ranks of its host; null if another rank
     *     checks them
     */
    private record RankResult(RankReport report, Verification judged) {}

    private final RunSteps steps;
    private final RunOptions options;
    private final ExecutionSpec execution;

    MpiRun(RunSteps steps) {
        this.steps = steps;
        this.options = steps.options();
        this.execution = steps.execution();
    }

    int call() {
        return MpiRank.call(execution.deadline(), this::asRank);
    }

    private int asRank(Fabric world) throws IOException {
        options.problem.ranks = world.size();
        boolean first = world.rank() == 0;
        RunOutputs outputs = first ? steps.outputs() : null;
        Console console = first ? outputs.console() : new Console(steps.out(), true);
        Progress terminal = first ? Progress.forTerminal(options.quiet) : new Progress(false);
        try (LivePage page =
                        LivePage.open(
                                first && options.watch, options.title(), console, steps.err());
                Arena arena = Arena.ofShared();
                FolderLock lock = lock(world)) {
            Progress progress = page == null ? terminal : new LiveProgress(terminal, page);
            Inputs inputs = inputs(world, arena, lock, console, progress);
            if (inputs == null) {
                return ExitCode.USAGE;
            }
            console.info(
                    steps.ranks(inputs.problem(), world.hosts())
                            + ": "
                            + inputs.problem().describe());
            if (first) {
                steps.storeModel(inputs.request(), world::worked, console);
            }
            console.info("Running warmup...");
            RankReport report =
                    new RankRun(inputs, progress, listener(page, inputs, world)).run(world);
            Verification judged = judge(world, inputs, report, progress);
            List<RankResult> results = Collected.atFirst(world, new RankResult(report, judged));
            int code = 0;
            if (first) {
                code =
                        Heartbeat.during(
                                world, () -> finish(world.hosts(), inputs, results, outputs, page));
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
        } finally {
            terminal.end();
        }
    }

    /** If there is a viewer, all ranks report their rounds; only the first rank shows them. */
    private RoundListener listener(LivePage page, Inputs inputs, Fabric world) {
        if (!options.watch) {
            return null;
        }
        return page == null
                ? (rank, soFar) -> {}
                : new LiveRun(page, inputs.request(), world.hosts(), 1);
    }

    /** The first rank of a host takes the lock; hosts that share a folder know their own run. */
    private FolderLock lock(Fabric world) {
        long run = world.exchange(world.rank() == 0 ? FolderLock.newRun() : 0)[0];
        return new FolderLock(options.problem.dataDir, run);
    }

    /**
     * Host by host, since all hosts may share one folder.
     *
     * @return null if a rank has refused, and has said why
     */
    private Inputs inputs(
            Fabric world, Arena arena, FolderLock lock, Console console, Progress progress)
            throws IOException {
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
        return options.open(execution, arena);
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
            Hosts hosts, Inputs inputs, List<RankResult> results, RunOutputs outputs, LivePage page)
            throws IOException {
        List<RankReport> reports = results.stream().map(RankResult::report).toList();
        Verification verification =
                results.stream()
                        .map(RankResult::judged)
                        .filter(Objects::nonNull)
                        .reduce(Verification::and)
                        .orElseThrow();
        return steps.finish(outputs, page, inputs, hosts, reports, verification);
    }
}
