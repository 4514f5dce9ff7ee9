package dev.weft.cli.launch;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.console.RunFailedException;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.options.DeadlineOption;
import dev.weft.cli.options.OptionValues;
import dev.weft.fabric.memory.ShmJob;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code weft launch}: runs any program as ranks, which find each other by their environment. */
@Command(
        name = "launch",
        description = {
            "Starts a program once per rank, as processes of this host.",
            "Each process has its rank, the number of ranks and",
            "where they meet in its environment: WEFT_RANK, WEFT_RANKS, WEFT_JOB, WEFT_TOKEN and",
            "WEFT_DEADLINE_MS, which World.joined() reads, and RANK, LOCAL_RANK, WORLD_SIZE,",
            "LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and",
            "TORCHELASTIC_RUN_ID as torchrun sets them. Output goes where this command's goes;",
            "there is no standard input. When one fails the others have the deadline and 5 s to",
            "end."
        },
        footer = {
            "",
            "Examples:",
            "  ./weft launch -n 4 -- ./weft java examples/launch/Ranks.java",
            "  ./weft launch -n 4 --deadline 2m -- ./weft gather --launcher joined",
            "  ./weft launch --nnodes 1 --nproc-per-node 8 -- ./weft gather --launcher joined",
            "",
            "The program java is the Java that runs Weft.",
            "Exit codes: 0 all ranks ended well, 2 wrong usage, else that of the rank that failed",
            "first (128 plus the signal's number if a signal ended it)."
        })
public final class LaunchCommand extends WeftCommand {

    @Option(
            names = {"-n", "--ranks", "--n-ranks", "--nproc-per-node"},
            paramLabel = "R",
            description = "Processes to start (default: ${DEFAULT-VALUE}).")
    int ranks = 2;

    @Option(
            names = "--nnodes",
            paramLabel = "1",
            description = "As in torchrun, but only this host; mpirun starts ranks on several.")
    int nodes = 1;

    @Mixin DeadlineOption deadline;

    @Parameters(
            paramLabel = "PROGRAM",
            arity = "1..*",
            description = "The program and its arguments, after --.")
    List<String> program;

    @Override
    public Integer call() throws IOException {
        OptionValues.ranks(ranks);
        if (nodes != 1) {
            throw new UsageException(
                    "--nnodes "
                            + nodes
                            + ": expected 1; mpirun starts ranks on several hosts (World.mpi)");
        }
        String port = Integer.toString(freePort());
        try (RankProcesses processes = new RankProcesses(ShmJob.create(), deadline.value)) {
            for (int rank = 0; rank < ranks; rank++) {
                start(processes, rank, port);
            }
            int failed = processes.await(() -> {});
            return failed < 0 ? 0 : tell(processes, failed);
        }
    }

    /** Programs have printed their own errors; if they use Weft, their reports are compared. */
    private int tell(RankProcesses processes, int rank) {
        int code = processes.exitCode(rank);
        String failed = "rank " + rank + " " + processes.end(rank);
        RunFailedException failure = processes.failure(rank);
        boolean compared = !failure.details().isEmpty();
        ErrorMessage.print(err(), compared ? failure.getMessage() : failed);
        ErrorMessage.print(err(), failure.details());
        return code;
    }

    /** A port that is free now, for programs that want to meet at one; Weft does not. */
    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    private void start(RankProcesses processes, int rank, String port) {
        List<String> command = new ArrayList<>(program);
        if (command.getFirst().equals("java")) {
            command.set(0, RankProcesses.java());
        }
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment()
                .putAll(
                        Map.of(
                                "RANK",
                                Integer.toString(rank),
                                "LOCAL_RANK",
                                Integer.toString(rank),
                                "WORLD_SIZE",
                                Integer.toString(ranks),
                                "LOCAL_WORLD_SIZE",
                                Integer.toString(ranks),
                                "GROUP_RANK",
                                "0",
                                "GROUP_WORLD_SIZE",
                                "1",
                                "MASTER_ADDR",
                                "localhost",
                                "MASTER_PORT",
                                port,
                                "TORCHELASTIC_RUN_ID",
                                "weft-" + port));
        builder.redirectInput(new File("/dev/null"));
        builder.redirectOutput(ProcessBuilder.Redirect.INHERIT);
        builder.redirectError(ProcessBuilder.Redirect.INHERIT);
        try {
            processes.start(builder, ranks);
        } catch (IOException e) {
            throw new UsageException(
                    "cannot start '" + program.getFirst() + "': " + e.getMessage());
        }
    }
}
