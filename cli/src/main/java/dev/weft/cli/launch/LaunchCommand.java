package dev.weft.cli.launch;

import dev.weft.cli.console.ErrorMessage;
import dev.weft.cli.console.RunFailedException;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.console.WeftCommand;
import dev.weft.cli.options.DeadlineOption;
import dev.weft.cli.options.OptionValues;
import dev.weft.fabric.memory.RankEnvironment;
import dev.weft.fabric.memory.Renewals;
import dev.weft.fabric.memory.ShmJob;
import java.io.IOException;
import java.nio.file.Path;
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
            "Starts a program once per rank: as processes of this host, or by mpirun (--mpi).",
            "Each process has its rank, the number of ranks and",
            "where they meet in its environment: WEFT_RANK, WEFT_RANKS, WEFT_JOB, WEFT_TOKEN and",
            "WEFT_DEADLINE_MS, which World.joined() reads, and RANK, LOCAL_RANK, WORLD_SIZE,",
            "LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and",
            "TORCHELASTIC_RUN_ID as torchrun sets them. Output goes where this command's goes;",
            "there is no standard input. When one fails the others have the deadline and 5 s to",
            "end, or, with --restarts, to renew their world. When the command is told to end, by",
            "SIGTERM or SIGINT, they get SIGTERM and have the same time. With --mpi the environment",
            "is mpirun's, and mpirun ends the ranks."
        },
        footer = {
            "",
            "Examples:",
            "  ./weft launch -n 4 ./weft java examples/launch/Ranks.java",
            "  ./weft launch -n 4 --deadline 2m ./weft gather --launcher joined",
            "  ./weft launch --nnodes 1 --nproc-per-node 8 ./weft gather --launcher joined",
            "  ./weft launch -n 4 --log-dir logs --tee 3 -- ./my-program --its-option",
            "  ./weft launch -n 4 --restarts 3 --deadline 5s ./my-service",
            "  ./weft launch --mpi -n 4 --hostfile hosts.txt ./my-program",
            "",
            "The program java is the Java that runs Weft.",
            "Exit codes: 0 all ranks ended well, 2 wrong usage, else that of the rank that failed",
            "first (128 plus the signal's number if a signal ended it), or of mpirun."
        })
public final class LaunchCommand extends WeftCommand {

    @Option(
            names = {"-n", "--ranks", "--n-ranks", "--nproc-per-node", "--nproc_per_node"},
            paramLabel = "R",
            description = "Processes to start (default: ${DEFAULT-VALUE}).")
    int ranks = 2;

    @Mixin DeadlineOption deadline;

    @Option(
            names = {"--restarts", "--max-restarts", "--max_restarts"},
            paramLabel = "N",
            description =
                    "Start ranks again that end with an error or by a signal, at most N times in"
                            + " all. The others live on: World.renew() has all ranks meet again,"
                            + " also without a restart, at most N times. torchrun, whose option"
                            + " this is too, starts all ranks again each time (default: ${DEFAULT-VALUE}).")
    int restarts;

    @Mixin LaunchOutput output;

    @Option(
            names = "--mpi",
            description =
                    "Let mpirun start the ranks, with the options that Weft needs; World.auto and"
                            + " World.mpi() join them.")
    boolean mpi;

    @Option(
            names = "--hostfile",
            paramLabel = "FILE",
            description = "With --mpi: the hosts, for mpirun.")
    String hostfile;

    @Option(
            names = "--mpi-args",
            paramLabel = "ARGS",
            description =
                    "With --mpi: further arguments for mpirun, for example \"--map-by"
                            + " ppr:2:node\"; split at blanks that are not quoted.")
    String mpiArgs;

    @Mixin TorchrunOptions torchrun;

    @Parameters(
            paramLabel = "PROGRAM",
            arity = "1..*",
            description = "The program and its arguments; -- may come before it.")
    List<String> program;

    @Override
    public Integer call() throws IOException {
        OptionValues.ranks(ranks);
        OptionValues.between("--restarts", restarts, 0, Integer.MAX_VALUE);
        torchrun.check();
        if (program.getFirst().equals("java")) {
            program.set(0, RankProcesses.java());
        }
        if (mpi) {
            return runMpi();
        }
        if (hostfile != null || mpiArgs != null) {
            throw new UsageException(
                    "%s is for mpirun: expected --mpi as well",
                    hostfile == null ? "--mpi-args " + mpiArgs : "--hostfile " + hostfile);
        }
        output.prepare();
        ShmJob job = ShmJob.create();
        try (RankProcesses processes = new RankProcesses(job, deadline.value)) {
            processes.passOnSigterm();
            int failed = run(processes, job);
            if (processes.isEnding()) {
                throw RankProcesses.toldToEnd();
            }
            return failed < 0 ? 0 : tell(processes, failed);
        }
    }

    /** Returns the rank that failed first, or -1, when all have ended and all is printed. */
    private int run(RankProcesses processes, ShmJob job) throws IOException {
        Map<String, String> common = torchrun.environment();
        Restarts again =
                restarts == 0
                        ? null
                        : new Restarts(
                                processes,
                                new Renewals(job, ranks),
                                restarts,
                                deadline.value,
                                err(),
                                System::nanoTime);
        try (LaunchOutput open = output) {
            for (int rank = 0; rank < ranks; rank++) {
                start(processes, open, rank, common);
            }
            return again == null ? processes.await(() -> {}) : processes.awaitFinal(again::areOver);
        }
    }

    private int runMpi() throws IOException {
        if (restarts > 0) {
            throw new UsageException(
                    "--restarts %s does not go with --mpi, since MPI ends the whole job when a rank"
                            + " is lost: expected a start of the job by the batch system or a loop"
                            + " (docs/reliability.md)",
                    restarts);
        }
        if (output.isSet()) {
            throw new UsageException(
                    "--log-dir, --tee, --redirects and --prefix do not go with --mpi: expected"
                            + " mpirun's own options, for example --mpi-args --tag-output");
        }
        Map<String, String> environment =
                Map.of(RankEnvironment.DEADLINE_MS, Long.toString(deadline.value.toMillis()));
        MpiCommandLine command = new MpiCommandLine(hostfile, mpiArgs, ranks, program, environment);
        int code = new MpiProgram(command).run();
        if (code != 0) {
            ErrorMessage.print(
                    err(),
                    code > RankProcesses.SIGNAL_EXIT
                            ? "mpirun was ended by signal " + (code - RankProcesses.SIGNAL_EXIT)
                            : "mpirun ended with exit code " + code);
        }
        return code;
    }

    /** Programs have printed their own errors; if they use Weft, their reports are compared. */
    private int tell(RankProcesses processes, int rank) {
        int code = processes.exitCode(rank);
        Path log = output.file(rank);
        String failed =
                "rank %s %s%s"
                        .formatted(
                                rank,
                                processes.end(rank),
                                log == null ? "" : "; its output is in " + log);
        RunFailedException failure = processes.failure(rank);
        boolean compared = !failure.details().isEmpty();
        ErrorMessage.print(err(), compared ? failure.getMessage() : failed);
        ErrorMessage.print(err(), failure.details());
        return code;
    }

    private void start(
            RankProcesses processes, LaunchOutput open, int rank, Map<String, String> common) {
        ProcessBuilder builder = new ProcessBuilder(new ArrayList<>(program));
        builder.environment().putAll(common);
        builder.environment()
                .putAll(
                        Map.of(
                                "RANK", Integer.toString(rank),
                                "LOCAL_RANK", Integer.toString(rank),
                                "WORLD_SIZE", Integer.toString(ranks),
                                "LOCAL_WORLD_SIZE", Integer.toString(ranks)));
        try {
            open.start(processes, builder, ranks, out(), err());
        } catch (IOException e) {
            throw new UsageException(
                    "cannot start '" + program.getFirst() + "': " + e.getMessage());
        }
    }
}
