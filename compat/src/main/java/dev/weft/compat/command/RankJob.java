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
 * What all ranks of a command do, wherever they run and whoever started them. One process gets
 * their results: the command, or the first rank.
 */
record RankJob(SourceCommand<?> command) {

    /** The file in which ranks that the command started report to it. */
    static final RankFile<SourceReport> REPORT =
            new RankFile<>("WEFT_REPORT", "report", SourceReport.class, Integer.MAX_VALUE);

    private Duration deadline() {
        return command.deadline.value;
    }

    /** Whether this process is a rank that the command, 'weft launch' or torchrun started. */
    boolean joins() {
        return command.launch.isJoined() || REPORT.isAskedFor();
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
        LauncherOptions launch = command.launch;
        return switch (launch.startOrJoin()) {
            case THREADS -> runThreads(ranks);
            case PROCESSES -> {
                Progress progress = Progress.forTerminal(command.quiet);
                yield command.finish(
                        Hosts.one(ranks),
                        new ProcessLauncher<>(arguments, ranks, deadline(), REPORT, null, progress)
                                .run());
            }
            case MPI -> {
                if (MpiEnvironment.current().launched()) {
                    yield MpiRank.call(deadline(), this::asRank);
                }
                MpiCommandLine mpirun =
                        MpiCommandLine.ofWeft(launch.hostfile, launch.mpiArgs, ranks, arguments);
                yield new MpiStart(mpirun, ranks, deadline(), out).run();
            }
        };
    }

    private int runThreads(int ranks) throws IOException {
        Progress progress = Progress.forTerminal(command.quiet);
        List<SourceReport> found;
        try (Arena arena = Arena.ofShared();
                World world = World.threads(ranks, deadline())) {
            SourceRun part = command.prepare(ranks, arena);
            found = world.call(fabric -> part.run(fabric, progress.ofRank(fabric.rank())));
        } finally {
            progress.end();
        }
        return command.finish(Hosts.one(ranks), found);
    }

    /** A rank that is a process; the exit code is the same on all. */
    private int asRank(Fabric world) throws IOException {
        int rank = world.rank();
        Progress progress =
                ProgressFile.isAskedFor()
                        ? ProgressFile.ofRank(rank)
                        : Progress.forTerminal(command.quiet).ofRank(rank);
        SourceReport found;
        try (Arena arena = Arena.ofShared()) {
            found = command.prepare(world.size(), arena).run(world, progress);
        } catch (UsageException | IllegalArgumentException e) {
            // If all refuse alike, only one reports it.
            if (rank > 0 && !REPORT.isAskedFor()) {
                return ExitCode.USAGE;
            }
            throw e;
        } finally {
            progress.end();
        }
        if (REPORT.isAskedFor()) {
            REPORT.write(found);
            return 0;
        }
        List<SourceReport> all = Collected.atFirst(world, found);
        int code = 0;
        if (rank == 0) {
            code = Heartbeat.during(world, () -> command.finish(world.hosts(), all));
            MpiRank.tellExit(code);
        }
        return (int) world.exchange(code)[0];
    }
}
