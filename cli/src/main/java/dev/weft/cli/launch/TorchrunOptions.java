package dev.weft.cli.launch;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.options.OptionValues;
import dev.weft.fabric.memory.RankEnvironment;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Map;
import picocli.CommandLine.Option;

/** Options of torchrun. What they ask for on one host is done; the rest is refused. */
final class TorchrunOptions {

    @Option(
            names = "--nnodes",
            paramLabel = "1",
            description = "As in torchrun, but only this host; for several use --mpi.")
    String nodes = "1";

    @Option(
            names = {"--rdzv-backend", "--rdzv_backend"},
            paramLabel = "NAME",
            description = "As in torchrun, c10d or static; Weft's ranks meet in shared memory.")
    String backend = "c10d";

    @Option(
            names = {"--rdzv-endpoint", "--rdzv_endpoint"},
            paramLabel = "HOST:PORT",
            description =
                    "As in torchrun: MASTER_ADDR, this host, and MASTER_PORT (default: free).")
    String endpoint = "localhost:0";

    @Option(
            names = {"--rdzv-id", "--rdzv_id"},
            paramLabel = "ID",
            description = "As in torchrun: TORCHELASTIC_RUN_ID.")
    String id;

    @Option(names = "--standalone", description = "As in torchrun: on one host, as always here.")
    boolean standalone;

    @Option(
            names = {"--no-python", "--no_python"},
            description = "As in torchrun: any program, not only Python's, as always here.")
    boolean noPython;

    void check() {
        if (!nodes.equals("1") && !nodes.equals("1:1")) {
            throw new UsageException(
                    "--nnodes %s: expected 1; ranks on several hosts need MPI: --mpi --hostfile"
                            + " FILE",
                    nodes);
        }
        OptionValues.oneOf("--rdzv-backend", backend, "c10d", "static");
        if (id != null && id.isEmpty()) {
            throw new UsageException("--rdzv-id '': expected a name for the run");
        }
        if (!RankEnvironment.isHere(host()) || port() < 0 || port() > 65_535) {
            throw new UsageException(
                    "--rdzv-endpoint %s: expected a name of this host and a port, for example"
                            + " localhost:29500; ranks on several hosts need --mpi",
                    endpoint);
        }
    }

    private String host() {
        return endpoint.replaceFirst(":[^:]*$", "");
    }

    /** -1 if it is no number. */
    private int port() {
        String port = endpoint.substring(host().length());
        if (port.isEmpty()) {
            return 0;
        }
        return port.matches(":[0-9]{1,5}") ? Integer.parseInt(port.substring(1)) : -1;
    }

    /** The variables that are the same for all ranks. */
    Map<String, String> environment() throws IOException {
        String port = Integer.toString(port() == 0 ? freePort() : port());
        return Map.of(
                "GROUP_RANK",
                "0",
                "GROUP_WORLD_SIZE",
                "1",
                "MASTER_ADDR",
                host(),
                "MASTER_PORT",
                port,
                "TORCHELASTIC_RUN_ID",
                id == null ? "weft-" + port : id);
    }

    /** A port that is free now, for programs that want to meet at one; Weft does not. */
    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
