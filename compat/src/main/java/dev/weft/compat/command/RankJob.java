package dev.weft.compat.command;

import dev.weft.cli.console.ExitCode;
import dev.weft.cli.console.Progress;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.launch.Collected;
import dev.weft.cli.launch.Heartbeat;
import dev.weft.cli.launch.MpiCommandLine;
import dev.weft.cli.launch.MpiRank;
import dev.weft.cli.launch.MpiStart;
import dev.weft.cli.launch.ProcessLauncher;
import dev.weft.cli.launch.ProgressFile;
import dev.weft.cli.message.RankFile;
import dev.weft.cli.options.LauncherOptions;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.World;
import dev.weft.ffi.MpiEnvironment;
import dev.weft.plan.Hosts;
import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;

/**
 * What all ranks do, wherever they run and whoever started them. One process gets their results:
 * the command, or the first rank.
 *
 * @param file the file in which ranks that the command started report to it
 * @param <R> what a rank finds
 */
record RankJob<R extends Record>(
        LauncherOptions launch, RankFile<R> file, Duration deadline, boolean quiet, Job<R> job) {

    /** What is done. */
    interface Job<R> {

        /** Prepares the part of this process's ranks, one of {@code ranks} or all of them. */
        Part<R> prepare(int ranks, Arena arena);

        /** Prints what the ranks found, by rank, and returns the exit code. */
        int finish(Hosts hosts, List<R> found) throws IOException;
    }

    /** What one rank does; any rank's thread may call it. */
    interface Part<R> {
        R run(Fabric world, Progress progress) throws IOException;
    }

    /** Whether this process is a rank that the command, 'weft launch' or torchrun started. */
    boolean joins() {
        return launch.isJoined() || file.isAskedFor();
    }

    /**
     * @param arguments the subcommand and its options, which every rank's process parses again
     */
    int start(int ranks, List<String> arguments, PrintWriter out) throws IOException {
        if (joins()) {
            try (World world = World.joined()) {
                return world.call(this::asRank).getFirst();
            }
        }
        return switch (launch.startOrJoin()) {
            case THREADS -> runThreads(ranks);
            case PROCESSES -> {
                Progress progress = Progress.forTerminal(quiet);
                yield job.finish(
                        Hosts.one(ranks),
                        new ProcessLauncher<>(arguments, ranks, deadline, file, null, progress)
                                .run());
            }
            case MPI -> {
                if (MpiEnvironment.current().launched()) {
                    yield MpiRank.call(deadline, this::asRank);
                }
                MpiCommandLine command =
                        MpiCommandLine.ofWeft(launch.hostfile, launch.mpiArgs, ranks, arguments);
                yield new MpiStart(command, ranks, deadline, out).run();
            }
        };
    }

    private int runThreads(int ranks) throws IOException {
        Progress progress = Progress.forTerminal(quiet);
        List<R> found;
        try (Arena arena = Arena.ofShared();
                World world = World.threads(ranks, deadline)) {
            Part<R> part = job.prepare(ranks, arena);
            found = world.call(fabric -> part.run(fabric, progress.ofRank(fabric.rank())));
        } finally {
            progress.end();
        }
        return job.finish(Hosts.one(ranks), found);
    }

    /** A rank that is a process; the exit code is the same on all. */
    private int asRank(Fabric world) throws IOException {
        int rank = world.rank();
        Progress progress =
                ProgressFile.isAskedFor()
                        ? ProgressFile.ofRank(rank)
                        : Progress.forTerminal(quiet).ofRank(rank);
        R found;
        try (Arena arena = Arena.ofShared()) {
            found = job.prepare(world.size(), arena).run(world, progress);
        } catch (UsageException | IllegalArgumentException e) {
            // If all refuse alike, only one reports it.
            if (rank > 0 && !file.isAskedFor()) {
                return ExitCode.USAGE;
            }
            throw e;
        } finally {
            progress.end();
        }
        if (file.isAskedFor()) {
            file.write(found);
            return 0;
        }
        List<R> all = Collected.atFirst(world, found);
        int code = 0;
        if (rank == 0) {
            code = Heartbeat.during(world, () -> job.finish(world.hosts(), all));
            MpiRank.tellExit(code);
        }
        return (int) world.exchange(code)[0];
    }
}
