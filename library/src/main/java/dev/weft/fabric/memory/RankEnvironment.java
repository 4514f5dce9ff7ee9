package dev.weft.fabric.memory;

import dev.weft.fabric.World;
import dev.weft.process.EnvironmentVariable;
import dev.weft.process.SafeText;
import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;

/**
 * Reads the environment variables that make a process a rank: Weft's own ({@link
 * ShmJob#environment} sets them) or, if there are none, torchrun's, which are enough for ranks of
 * one host.
 */
public final class RankEnvironment {

    static final String RANK = "WEFT_RANK";
    static final String RANKS = "WEFT_RANKS";
    static final String FOLDER = "WEFT_JOB";
    public static final String DEADLINE_MS = "WEFT_DEADLINE_MS";
    static final String TOKEN = "WEFT_TOKEN";

    private static final int MAX_RANKS = 4096;

    private static final String TORCHRUN_RANK = "RANK";
    private static final String TORCHRUN_LOCAL_RANK = "LOCAL_RANK";
    private static final String TORCHRUN_RANKS = "WORLD_SIZE";
    private static final String TORCHRUN_LOCAL_RANKS = "LOCAL_WORLD_SIZE";
    private static final String MASTER_ADDRESS = "MASTER_ADDR";
    private static final String MASTER_PORT = "MASTER_PORT";
    private static final String TORCHRUN_ID = "TORCHELASTIC_RUN_ID";

    private RankEnvironment() {}

    /** Whether this process was started as a rank. */
    public static boolean isSet(Map<String, String> variables) {
        return variables.containsKey(RANK) || variables.containsKey(TORCHRUN_RANKS);
    }

    /**
     * Joins the world as the rank that the variables name.
     *
     * @param deadlineOrNull null for the deadline that they name
     * @throws IllegalArgumentException if one of them is missing or wrong
     */
    public static MemoryFabric join(Map<String, String> variables, Duration deadlineOrNull) {
        if (!variables.containsKey(RANK) && variables.containsKey(TORCHRUN_RANKS)) {
            return joinTorchrun(variables, deadlineOrNull);
        }
        if (!isSet(variables)) {
            throw new IllegalArgumentException(
                    """
                    environment variable %s is not set, so nobody has started this process as a \
                    rank: expected a start by ./weft launch -n RANKS -- PROGRAM, or by torchrun\
                    """
                            .formatted(RANK));
        }
        int ranks = EnvironmentVariable.number(variables, RANKS);
        int rank = EnvironmentVariable.number(variables, RANK);
        String folder = variables.get(FOLDER);
        checkRanks(ranks);
        if (rank >= ranks || folder == null) {
            throw new IllegalArgumentException(
                    "%s=%s, %s=%s, %s=%s: expected a rank below the ranks and a folder to meet in"
                            .formatted(RANK, rank, RANKS, ranks, FOLDER, folder));
        }
        Duration deadline = deadline(variables, deadlineOrNull);
        RunToken token = RunToken.parse(variables.get(TOKEN));
        if (!token.isSet() && ShmJob.hasStarter(Path.of(folder))) {
            throw new IllegalArgumentException(
                    """
                    environment variable %s is not set: expected the one of the command that made \
                    %s and starts its ranks\
                    """
                            .formatted(TOKEN, folder));
        }
        Path meeting = Path.of(folder);
        return Renewals.areIn(meeting)
                ? Renewals.join(meeting, rank, ranks, token, deadline)
                : Rendezvous.join(meeting, rank, ranks, token, deadline);
    }

    /**
     * Refuses ranks that cannot meet a second time.
     *
     * @throws UnsupportedOperationException with a one-line message that says what to do
     */
    static void requireRenewal(Map<String, String> variables) {
        if (!variables.containsKey(RANK)) {
            throw new UnsupportedOperationException(
                    """
                    ranks that torchrun started cannot meet again: end this process, so that \
                    torchrun starts all ranks again (--max-restarts), or use ./weft launch --restarts\
                    """);
        }
        Path folder = Path.of(variables.get(FOLDER));
        // Without the folder the starter is gone, which the next meeting says.
        if (Files.exists(folder) && !Renewals.areIn(folder)) {
            throw new UnsupportedOperationException(
                    """
                    nobody starts these ranks again, so they cannot meet again: expected a start \
                    by ./weft launch --restarts N\
                    """);
        }
    }

    /**
     * A given deadline, or else that of the command that started this rank, or else the default.
     */
    public static Duration deadline(Map<String, String> variables, Duration deadlineOrNull) {
        Duration deadline = deadlineOrNull;
        if (deadline == null) {
            deadline =
                    variables.containsKey(DEADLINE_MS)
                            ? Duration.ofMillis(EnvironmentVariable.number(variables, DEADLINE_MS))
                            : World.DEFAULT_DEADLINE;
        }
        if (!deadline.isPositive()) {
            throw new IllegalArgumentException(
                    "a deadline of " + deadline.toMillis() + " ms: expected more than zero");
        }
        return deadline;
    }

    /** Refuses a number of ranks that no world has. */
    public static void checkRanks(int ranks) {
        if (ranks < 1 || ranks > MAX_RANKS) {
            throw new IllegalArgumentException(ranks + " ranks: expected 1 to " + MAX_RANKS);
        }
    }

    /**
     * Joins ranks that a launcher such as torchrun has started. They meet in a private folder that
     * is named after the run; no port is opened.
     */
    private static MemoryFabric joinTorchrun(
            Map<String, String> variables, Duration deadlineOrNull) {
        int ranks = EnvironmentVariable.number(variables, TORCHRUN_RANKS);
        boolean global = variables.containsKey(TORCHRUN_RANK);
        String name = global ? TORCHRUN_RANK : TORCHRUN_LOCAL_RANK;
        int rank = EnvironmentVariable.number(variables, name);
        int port = EnvironmentVariable.number(variables, MASTER_PORT);
        String address = variables.get(MASTER_ADDRESS);
        checkRanks(ranks);
        if (rank >= ranks || port > 65_535) {
            throw new IllegalArgumentException(
                    "%s=%s, %s=%s, %s=%s: expected a rank below the ranks and a port"
                            .formatted(name, rank, TORCHRUN_RANKS, ranks, MASTER_PORT, port));
        }
        int here =
                variables.containsKey(TORCHRUN_LOCAL_RANKS)
                        ? EnvironmentVariable.number(variables, TORCHRUN_LOCAL_RANKS)
                        : ranks;
        if (here != ranks || !isHere(address)) {
            throw new IllegalArgumentException(
                    """
                    %s ranks of which %s are on this host, %s=%s: expected all on this host and \
                    its name or localhost; ranks on several hosts need MPI (World.mpi, mpirun)\
                    """
                            .formatted(
                                    ranks,
                                    here,
                                    MASTER_ADDRESS,
                                    address == null ? "" : SafeText.excerpt(address)));
        }
        String run = "%s:%s/%s".formatted(address, port, variables.getOrDefault(TORCHRUN_ID, ""));
        Duration deadline = deadline(variables, deadlineOrNull);
        return Rendezvous.join(ShmJob.torchrunFolder(run), rank, ranks, RunToken.NONE, deadline);
    }

    /** Whether the name or address is one of this host's. */
    public static boolean isHere(String host) {
        if (host == null || host.isEmpty()) {
            return false;
        }
        try {
            InetAddress address = InetAddress.getByName(host);
            return address.isLoopbackAddress()
                    || NetworkInterface.getByInetAddress(address) != null;
        } catch (IOException e) {
            // An unknown name is not this host's.
            return false;
        }
    }
}
