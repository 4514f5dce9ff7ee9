package dev.weft.cli;

import dev.weft.ffi.MpiFamily;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/**
 * Starts this very command as ranks by mpirun, and ends as it ends. When this process is told to
 * end, mpirun is, and with it the ranks.
 */
final class MpiStart {

    /** Environment variable: the mpirun to take, where it is not the first on the PATH. */
    static final String STARTER = "WEFT_MPIRUN";

    private static final long PATIENCE_SECONDS = 10;
    private static final long LOOK_MS = 100;
    private static final long END_SECONDS = 3;

    private final ExecutionOptions options;
    private final int ranks;
    private final List<String> arguments;

    /** What the first rank has said that it ends with, or -1. */
    private volatile int code = -1;

    private volatile boolean failed;
    private final EndPieces ends = new EndPieces();

    /**
     * @param arguments the options of run, which every rank parses again
     */
    MpiStart(ExecutionOptions options, int ranks, List<String> arguments) {
        this.options = options;
        this.ranks = ranks;
        this.arguments = arguments;
    }

    int run() throws IOException {
        if (options.hostfile != null
                && !(Files.isRegularFile(Path.of(options.hostfile))
                        && Files.isReadable(Path.of(options.hostfile)))) {
            throw new UsageException("--hostfile " + options.hostfile + ": no such file");
        }
        String starter = System.getenv().getOrDefault(STARTER, "mpirun");
        MpiFamily family = family(starter);
        ProcessBuilder builder = new ProcessBuilder(command(starter, family));
        builder.environment().put("WEFT_SKIP_BUILD", "1");
        builder.environment().put(MpiRun.STARTED, "1");
        // Its input stays open while this process lives: the first rank listens for its end.
        builder.redirectOutput(ProcessBuilder.Redirect.INHERIT);
        Process mpirun = builder.start();
        tellOfLife(mpirun);
        Thread hook = new Thread(() -> end(mpirun), "weft-abandon");
        Runtime.getRuntime().addShutdownHook(hook);
        try {
            Thread reader = Thread.ofPlatform().daemon().start(() -> passOn(mpirun));
            awaitEnd(mpirun);
            reader.join(TimeUnit.SECONDS.toMillis(1));
            Runtime.getRuntime().removeShutdownHook(hook);
            tellOfRanks();
            return code >= 0 ? code : Main.FAILED;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new RunFailedException("interrupted");
        } finally {
            end(mpirun);
        }
    }

    /**
     * When a rank has failed, or all have ended, mpirun gets some time to end too: where a link is
     * down it would wait for ever for the hosts behind it.
     */
    private void awaitEnd(Process mpirun) throws InterruptedException {
        long patience = Long.MAX_VALUE;
        while (!mpirun.waitFor(LOOK_MS, TimeUnit.MILLISECONDS) && patience > 0) {
            if (patience == Long.MAX_VALUE && (code >= 0 || failed)) {
                patience = TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS);
            }
            patience -= patience == Long.MAX_VALUE ? 0 : LOOK_MS;
        }
    }

    private static int exitCode(String said) {
        return switch (said.strip()) {
            case "0" -> 0;
            case "2" -> Main.USAGE;
            default -> Main.FAILED;
        };
    }

    /** Only who has heard this takes the end of its input for the end of this process. */
    private static void tellOfLife(Process mpirun) {
        try {
            mpirun.getOutputStream().write('\n');
            mpirun.getOutputStream().flush();
        } catch (IOException e) {
            // It has ended already, or takes no input: so be it.
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no input for mpirun", e);
        }
    }

    /** Each has said its line; together they tell more. */
    private void tellOfRanks() {
        List<RankEnd> told = ends.ends();
        if (told.stream().anyMatch(end -> end.situation().isPresent())) {
            new Culprit(told, Map.of())
                    .line()
                    .ifPresent(line -> System.err.println("weft: " + line));
            EndTable.lines(ranks, told, Map.of()).forEach(System.err::println);
        }
    }

    /** What ranks say to people, and what the first one says to this process. */
    private void passOn(Process mpirun) {
        try (BufferedReader errors = mpirun.errorReader()) {
            for (String line = errors.readLine(); line != null; line = errors.readLine()) {
                // Not at the beginning: launchers can be told to put the rank's number there.
                int exit = line.indexOf(MpiRun.EXIT);
                if (exit >= 0) {
                    code = exitCode(line.substring(exit + MpiRun.EXIT.length()));
                    continue;
                }
                if (ends.take(line)) {
                    continue;
                }
                failed |= line.contains("weft: ");
                System.err.println(line);
            }
        } catch (IOException e) {
            // Closed under us: mpirun has been ended.
            System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "no more to read", e);
        }
    }

    private static MpiFamily family(String starter) throws IOException {
        String version;
        try {
            Process process =
                    new ProcessBuilder(starter, "--version").redirectErrorStream(true).start();
            version = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UsageException(
                    "--launcher mpi: cannot start "
                            + starter
                            + " ("
                            + e.getMessage()
                            + "): install Open MPI or MPICH (Debian: openmpi-bin or mpich), or set "
                            + STARTER
                            + " to its mpirun");
        }
        if (version.contains("Open MPI") || version.contains("OpenRTE")) {
            return MpiFamily.OPEN_MPI;
        }
        if (version.contains("HYDRA")) {
            return MpiFamily.MPICH;
        }
        throw new UsageException(
                "--launcher mpi: "
                        + starter
                        + " is '"
                        + version.lines().findFirst().orElse("")
                        + "': expected the mpirun of Open MPI or of MPICH");
    }

    private List<String> command(String starter, MpiFamily family) {
        List<String> command = new ArrayList<>(List.of(starter, "-n", Integer.toString(ranks)));
        if (family == MpiFamily.OPEN_MPI) {
            openMpi(command);
        } else if (options.hostfile != null) {
            command.addAll(List.of("-f", options.hostfile));
        }
        if (options.mpiArgs != null && !options.mpiArgs.isBlank()) {
            command.addAll(List.of(options.mpiArgs.strip().split("\\s+")));
        }
        command.addAll(weft());
        return command;
    }

    /**
     * A rank has several threads and shares its host's cores with the ranks there by itself: bound
     * to one core they would all get in each other's way.
     */
    private void openMpi(List<String> command) {
        command.addAll(List.of("--bind-to", "none"));
        // Otherwise the first rank that dies takes all others along before they can say why.
        command.add("--enable-recovery");
        if (options.hostfile == null) {
            command.add("--oversubscribe");
        } else {
            command.addAll(List.of("--hostfile", options.hostfile));
        }
        if ("root".equals(System.getProperty("user.name"))) {
            command.add("--allow-run-as-root");
        }
        // MPICH passes the whole environment on, Open MPI only what it is told to.
        Map<String, String> environment = new TreeMap<>(System.getenv());
        environment.put("WEFT_SKIP_BUILD", "1");
        environment.put(MpiRun.STARTED, "1");
        for (String name : environment.keySet()) {
            if (name.startsWith("WEFT_") || name.equals("JAVA_HOME")) {
                command.addAll(List.of("-x", name));
            }
        }
    }

    /** The launcher script where there is one: other hosts may have their Java elsewhere. */
    private List<String> weft() {
        List<String> command = new ArrayList<>();
        String home = System.getProperty("weft.home");
        if (home != null) {
            command.add(Path.of(home, "weft").toString());
        } else {
            command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
            command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
            command.addAll(List.of("-cp", System.getProperty("java.class.path")));
            command.add(Main.class.getName());
        }
        command.add("run");
        command.addAll(arguments);
        return command;
    }

    private static void end(Process mpirun) {
        List<ProcessHandle> ranks = mpirun.descendants().toList();
        mpirun.destroy();
        try {
            if (!mpirun.waitFor(END_SECONDS, TimeUnit.SECONDS)) {
                mpirun.destroyForcibly();
            }
            ranks.forEach(ProcessHandle::destroyForcibly);
        } catch (InterruptedException e) {
            mpirun.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
