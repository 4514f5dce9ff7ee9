package dev.weft.fabric.mpi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.abort;

import dev.weft.fabric.ChildJvm;
import dev.weft.ffi.MpiFamily;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Ranks of a main class of the tests, started by the mpirun of one family. Where the machine has
 * none, the test is skipped.
 */
public final class MpiRanks {

    private static final Map<MpiFamily, Optional<String>> LAUNCHERS = new ConcurrentHashMap<>();

    private final MpiFamily family;
    private final int ranks;
    private final List<String> launcherOptions = new ArrayList<>();
    private final List<String> javaOptions = new ArrayList<>(ChildJvm.CHEAP);

    private MpiRanks(MpiFamily family, int ranks) {
        this.family = family;
        this.ranks = ranks;
        java("-XX:+ErrorFileToStdout");
    }

    @SuppressWarnings("exports")
    public static MpiRanks of(MpiFamily family, int ranks) {
        return new MpiRanks(family, ranks);
    }

    /** As if every host had this many ranks; 0 where this machine is the only host. */
    public MpiRanks perHost(int most) {
        return java("-Dweft.mpi.ranks.per.host=" + most);
    }

    /** No message has more bytes. */
    public MpiRanks messages(long most) {
        return java("-Dweft.mpi.message=" + most);
    }

    public MpiRanks java(String option) {
        javaOptions.add(option);
        return this;
    }

    /** The launcher lets ranks live on when one of them dies; Open MPI's alone can do that. */
    public MpiRanks outlivingEachOther() {
        launcherOptions.add("--enable-recovery");
        return this;
    }

    public ChildJvm start(Class<?> main, String... args) {
        String mpirun =
                LAUNCHERS
                        .computeIfAbsent(family, MpiRanks::find)
                        .orElseGet(() -> abort("no mpirun of " + family.label() + " on the path"));
        // The library follows the launcher, whatever the environment of the tests says.
        List<String> launcher =
                new ArrayList<>(List.of("env", "-u", "WEFT_MPI_LIBRARY", mpirun, "-n", "" + ranks));
        if (family == MpiFamily.OPEN_MPI) {
            launcher.addAll(List.of("--oversubscribe", "--bind-to", "none"));
            if ("root".equals(System.getProperty("user.name"))) {
                launcher.add("--allow-run-as-root");
            }
        }
        launcher.addAll(launcherOptions);
        return ChildJvm.start(launcher, javaOptions, main, Map.of(), args);
    }

    /** Runs to the good end, at which every rank has said the same line, which is returned. */
    public String run(String prefix, Class<?> main, String... args) {
        try (ChildJvm child = start(main, args)) {
            int code = child.exitCode();
            List<String> lines =
                    child.output().stream().filter(line -> line.startsWith(prefix)).toList();
            String all = String.join("\n", child.output());
            assertEquals(0, code, all);
            assertEquals(ranks, lines.size(), all);
            assertEquals(1, lines.stream().distinct().count(), all);
            return lines.getFirst();
        }
    }

    /** The first program on the path that introduces itself as the family's launcher. */
    private static Optional<String> find(MpiFamily family) {
        boolean open = family == MpiFamily.OPEN_MPI;
        List<String> names =
                open
                        ? List.of("mpirun.openmpi", "mpirun")
                        : List.of("mpirun.mpich", "mpiexec.hydra", "mpirun");
        for (String name : names) {
            for (String bin : System.getenv("PATH").split(File.pathSeparator)) {
                Path program = Path.of(bin, name);
                if (Files.isExecutable(program)
                        && version(program).contains(open ? "Open MPI" : "HYDRA")) {
                    return Optional.of(program.toString());
                }
            }
        }
        return Optional.empty();
    }

    private static String version(Path program) {
        try {
            Process process =
                    new ProcessBuilder(program.toString(), "--version")
                            .redirectErrorStream(true)
                            .start();
            return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(program + " cannot be started", e);
        }
    }
}
