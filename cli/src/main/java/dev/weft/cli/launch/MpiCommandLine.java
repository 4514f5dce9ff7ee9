package dev.weft.cli.launch;

import dev.weft.cli.console.UsageException;
import dev.weft.cli.diagnosis.RankFailure;
import dev.weft.ffi.MpiFamily;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * How mpirun is called so that it starts this command as ranks.
 *
 * @param hostfile null if mpirun is given none
 * @param mpiArgs more options of mpirun, or null
 * @param arguments the subcommand and its options, which every rank parses again
 */
public record MpiCommandLine(String hostfile, String mpiArgs, int ranks, List<String> arguments) {

    /** Environment variable: the mpirun to use, if not the first on the PATH. */
    static final String STARTER = "WEFT_MPIRUN";

    /** Environment variable: the number of hosts of the {@code weft lab} that this runs in. */
    private static final String LAB_HOSTS = "WEFT_LAB_HOSTS";

    /** What the ranks find in their environment. */
    private static final Map<String, String> ENVIRONMENT =
            Map.of("WEFT_SKIP_BUILD", "1", RankFailure.MPI_STARTED, "1");

    /** The process to be started. */
    ProcessBuilder builder() throws IOException {
        if (hostfile != null
                && !(Files.isRegularFile(Path.of(hostfile))
                        && Files.isReadable(Path.of(hostfile)))) {
            throw new UsageException("--hostfile " + hostfile + ": no such file");
        }
        String starter = System.getenv().getOrDefault(STARTER, "mpirun");
        ProcessBuilder builder =
                new ProcessBuilder(command(starter, family(starter), System.getenv()));
        builder.environment().putAll(ENVIRONMENT);
        return builder;
    }

    private static MpiFamily family(String starter) throws IOException {
        String version;
        try {
            Process process =
                    new ProcessBuilder(starter, "--version").redirectErrorStream(true).start();
            version = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UsageException(
                    "--launcher mpi: cannot start %s (%s): install Open MPI or MPICH (Debian:"
                            + " openmpi-bin or mpich), or set %s to its mpirun",
                    starter, e.getMessage(), STARTER);
        }
        if (version.contains("Open MPI") || version.contains("OpenRTE")) {
            return MpiFamily.OPEN_MPI;
        }
        if (version.contains("HYDRA")) {
            return MpiFamily.MPICH;
        }
        throw new UsageException(
                "--launcher mpi: %s is '%s': expected the mpirun of Open MPI or of MPICH",
                starter, version.lines().findFirst().orElse(""));
    }

    List<String> command(String starter, MpiFamily family, Map<String, String> environment) {
        List<String> command = new ArrayList<>(List.of(starter, "-n", Integer.toString(ranks)));
        if (family == MpiFamily.OPEN_MPI) {
            openMpi(command, environment.keySet());
        } else if (hostfile != null) {
            command.addAll(List.of("-f", hostfile));
        }
        if (mpiArgs != null && !mpiArgs.isBlank()) {
            command.addAll(List.of(mpiArgs.strip().split("\\s+")));
        } else if (hostfile == null) {
            spread(command, family, environment.getOrDefault(LAB_HOSTS, ""));
        }
        command.addAll(weft());
        return command;
    }

    /** Evenly over the hosts of a lab: mpirun would fill the first one, and use no link. */
    private void spread(List<String> command, MpiFamily family, String labHosts) {
        if (labHosts.matches("[1-9][0-9]?")) {
            int perHost = Math.ceilDiv(ranks, Integer.parseInt(labHosts));
            command.addAll(
                    family == MpiFamily.OPEN_MPI
                            ? List.of("--map-by", "ppr:" + perHost + ":node")
                            : List.of("-ppn", Integer.toString(perHost)));
        }
    }

    /**
     * A rank has several threads and divides its host's cores with the other ranks itself: bound to
     * one core, its threads would get in each other's way.
     */
    private void openMpi(List<String> command, Set<String> environment) {
        command.addAll(List.of("--bind-to", "none"));
        // Otherwise the first rank that dies would end all others before they can say why.
        command.add("--enable-recovery");
        if (hostfile == null) {
            command.add("--oversubscribe");
        } else {
            command.addAll(List.of("--hostfile", hostfile));
        }
        if ("root".equals(System.getProperty("user.name"))) {
            command.add("--allow-run-as-root");
        }
        // MPICH passes the whole environment on, Open MPI only what it is told to.
        Set<String> names = new TreeSet<>(environment);
        names.addAll(ENVIRONMENT.keySet());
        for (String name : names) {
            if (name.startsWith("WEFT_") || name.startsWith("NEURON") || name.equals("JAVA_HOME")) {
                command.addAll(List.of("-x", name));
            }
        }
    }

    /** The launcher script if there is one: other hosts may have their Java elsewhere. */
    private List<String> weft() {
        String home = System.getProperty("weft.home");
        List<String> command =
                home == null
                        ? RankProcesses.command(List.of()).command()
                        : new ArrayList<>(List.of(Path.of(home, "weft").toString()));
        command.addAll(arguments);
        return command;
    }
}
