package dev.weft.cli.launch;

import dev.weft.cli.console.RunFailedException;
import dev.weft.cli.console.UsageException;
import dev.weft.cli.diagnosis.RankFailure;
import dev.weft.ffi.MpiFamily;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;

/**
 * How mpirun is called so that it starts a program as ranks.
 *
 * @param hostfile null if mpirun is given none
 * @param mpiArgs more options of mpirun, or null
 * @param program what every rank runs, and its arguments
 * @param environment what the ranks find in their environment beside Weft's variables of this one
 */
public record MpiCommandLine(
        String hostfile,
        String mpiArgs,
        int ranks,
        List<String> program,
        Map<String, String> environment) {

    /** Environment variable: the mpirun to use, if not the first on the PATH. */
    static final String STARTER = "WEFT_MPIRUN";

    /** Environment variable: the number of hosts of the {@code weft lab} that this runs in. */
    private static final String LAB_HOSTS = "WEFT_LAB_HOSTS";

    /** A version is printed at once; a program that is no mpirun may wait for input. */
    private static final long VERSION_MS = 10_000;

    /**
     * This command as ranks, which report to it.
     *
     * @param arguments the subcommand and its options, which every rank parses again
     */
    public static MpiCommandLine ofWeft(
            String hostfile, String mpiArgs, int ranks, List<String> arguments) {
        List<String> program = weft();
        program.addAll(arguments);
        return new MpiCommandLine(
                hostfile,
                mpiArgs,
                ranks,
                program,
                Map.of("WEFT_SKIP_BUILD", "1", RankFailure.MPI_STARTED, "1"));
    }

    /** The process to be started. */
    ProcessBuilder builder() throws IOException {
        if (hostfile != null
                && !(Files.isRegularFile(Path.of(hostfile))
                        && Files.isReadable(Path.of(hostfile)))) {
            throw new UsageException("--hostfile " + hostfile + ": no such file");
        }
        List<String> more = words("--mpi-args", mpiArgs == null ? "" : mpiArgs);
        String starter = System.getenv().getOrDefault(STARTER, "mpirun");
        ProcessBuilder builder =
                new ProcessBuilder(command(starter, family(starter), more, System.getenv()));
        builder.environment().putAll(environment);
        return builder;
    }

    /** Splits at blanks; quotes and backslashes hide them, as in a shell. */
    static List<String> words(String option, String text) {
        List<String> words = new ArrayList<>();
        StringBuilder word = null;
        char quote = 0;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (quote == 0 && Character.isWhitespace(c)) {
                if (word != null) {
                    words.add(word.toString());
                }
                word = null;
                continue;
            }
            word = word == null ? new StringBuilder() : word;
            if (c == quote) {
                quote = 0;
            } else if (quote == 0 && (c == '"' || c == '\'')) {
                quote = c;
            } else if (c == '\\' && quote != '\'' && i + 1 < text.length()) {
                i++;
                word.append(text.charAt(i));
            } else {
                word.append(c);
            }
        }
        if (quote != 0) {
            throw new UsageException(
                    "%s '%s': expected a second %s, which ends what the first one quotes",
                    option, text, quote);
        }
        if (word != null) {
            words.add(word.toString());
        }
        return words;
    }

    private static MpiFamily family(String starter) throws IOException {
        String version = version(starter);
        if (version.contains("Open MPI") || version.contains("OpenRTE")) {
            return MpiFamily.OPEN_MPI;
        }
        if (version.contains("HYDRA")) {
            return MpiFamily.MPICH;
        }
        throw new UsageException(
                "%s is '%s': expected the mpirun of Open MPI or of MPICH",
                starter, version.lines().findFirst().orElse(""));
    }

    private static String version(String starter) throws IOException {
        Process process;
        try {
            process =
                    new ProcessBuilder(starter, "--version")
                            .redirectErrorStream(true)
                            .redirectInput(new File("/dev/null"))
                            .start();
        } catch (IOException e) {
            throw new UsageException(
                    "cannot start %s (%s): install Open MPI or MPICH (Debian:"
                            + " openmpi-bin or mpich), or set %s to its mpirun",
                    starter, e.getMessage(), STARTER);
        }
        PipeText output = new PipeText(process.getInputStream());
        process.onExit().completeOnTimeout(process, VERSION_MS, TimeUnit.MILLISECONDS).join();
        if (process.isAlive()) {
            process.destroyForcibly();
            throw new UsageException(
                    "%s --version has not ended after %s s: expected the mpirun of Open MPI or of"
                            + " MPICH",
                    starter, VERSION_MS / 1000);
        }
        output.read();
        int code = process.exitValue();
        if (code > RankProcesses.SIGNAL_EXIT) {
            TerminationSignal.awaitOwn();
            throw new RunFailedException(
                    "%s --version was ended by signal %s",
                    starter, code - RankProcesses.SIGNAL_EXIT);
        }
        return String.join("\n", output.lines());
    }

    List<String> command(
            String starter, MpiFamily family, List<String> more, Map<String, String> inherited) {
        List<String> command = new ArrayList<>(List.of(starter, "-n", Integer.toString(ranks)));
        if (family == MpiFamily.OPEN_MPI) {
            openMpi(command, inherited.keySet());
        } else if (hostfile != null) {
            command.addAll(List.of("-f", hostfile));
        }
        if (!more.isEmpty()) {
            command.addAll(more);
        } else if (hostfile == null) {
            spread(command, family, inherited.getOrDefault(LAB_HOSTS, ""));
        }
        command.addAll(program);
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
    private void openMpi(List<String> command, Set<String> inherited) {
        command.addAll(List.of("--bind-to", "none"));
        if (environment.containsKey(RankFailure.MPI_STARTED)) {
            // Otherwise the first rank that dies would end all others before they can say why.
            command.add("--enable-recovery");
        }
        if (hostfile == null) {
            command.add("--oversubscribe");
        } else {
            command.addAll(List.of("--hostfile", hostfile));
        }
        if ("root".equals(System.getProperty("user.name"))) {
            command.add("--allow-run-as-root");
        }
        // MPICH passes the whole environment on, Open MPI only what it is told to.
        Set<String> names = new TreeSet<>(inherited);
        names.addAll(environment.keySet());
        for (String name : names) {
            if (name.startsWith("WEFT_") || name.startsWith("NEURON") || name.equals("JAVA_HOME")) {
                command.addAll(List.of("-x", name));
            }
        }
    }

    /** The launcher script if there is one: other hosts may have their Java elsewhere. */
    private static List<String> weft() {
        String home = System.getProperty("weft.home");
        return home == null
                ? RankProcesses.command(List.of()).command()
                : new ArrayList<>(List.of(Path.of(home, "weft").toString()));
    }
}
