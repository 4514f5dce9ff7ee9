package dev.weft.bench.peers;

import dev.weft.bench.measure.SkippedException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * An MPI for C programs on this machine: the compiler on the PATH and the starter that belongs to
 * it.
 */
public record Mpi(Implementation implementation, Path compiler, Path starter) {

    /** Which implementation; they take different options. */
    public enum Implementation {
        OPEN_MPI("Open MPI", "mpirun.openmpi"),
        MPICH("MPICH", "mpirun.mpich");

        private final String label;
        private final String ownStarter;

        Implementation(String label, String ownStarter) {
            this.label = label;
            this.ownStarter = ownStarter;
        }

        public String label() {
            return label;
        }

        /** Deals ranks to hosts in turn. */
        public String[] onePerHost() {
            return this == OPEN_MPI
                    ? new String[] {"--map-by", "node"}
                    : new String[] {"-ppn", "1"};
        }

        /** By what mpicc -show or mpirun --version print. */
        public static Optional<Implementation> of(String text) {
            if (text.contains("Open MPI") || text.contains("openmpi")) {
                return Optional.of(OPEN_MPI);
            }
            return text.contains("HYDRA") || text.contains("mpich")
                    ? Optional.of(MPICH)
                    : Optional.empty();
        }
    }

    public static Mpi find(Path folder) throws SkippedException, IOException, InterruptedException {
        Path compiler =
                Programs.onPath("mpicc")
                        .orElseThrow(
                                () ->
                                        new SkippedException(
                                                "no mpicc on the PATH (Debian: libopenmpi-dev or"
                                                        + " libmpich-dev)"));
        ChildCommand.Output shown = Programs.run(folder, compiler.toString(), "-show");
        Implementation implementation =
                Implementation.of(shown.text() + shown.errors())
                        .orElseThrow(
                                () ->
                                        new SkippedException(
                                                "mpicc -show names neither Open MPI nor MPICH: "
                                                        + shown.lastLine()));
        // Beside the compiler first, then on the PATH.
        List<Path> starters = new ArrayList<>();
        Stream.of("mpirun", implementation.ownStarter)
                .map(compiler::resolveSibling)
                .filter(Files::isExecutable)
                .forEach(starters::add);
        starters.addAll(onPath("mpirun", implementation.ownStarter));
        Path starter =
                first(implementation, starters, folder)
                        .orElseThrow(
                                () ->
                                        new SkippedException(
                                                "no mpirun of "
                                                        + implementation.label()
                                                        + ", to which mpicc belongs"));
        return new Mpi(implementation, compiler, starter);
    }

    private static List<Path> onPath(String... names) {
        return Stream.of(names).flatMap(name -> Programs.onPath(name).stream()).toList();
    }

    private static Optional<Path> first(
            Implementation implementation, List<Path> starters, Path folder)
            throws IOException, InterruptedException {
        for (Path starter : starters) {
            ChildCommand.Output version = Programs.run(folder, starter.toString(), "--version");
            if (Implementation.of(version.text() + version.errors())
                    .equals(Optional.of(implementation))) {
                return Optional.of(starter);
            }
        }
        return Optional.empty();
    }

    /**
     * How to start ranks of this MPI where nothing has to be compiled, also more of them than there
     * are cores; empty if it is not here. The number of ranks and the program follow.
     */
    public static Optional<List<String>> startAnyway(Implementation implementation, Path folder)
            throws IOException, InterruptedException {
        List<String> oversubscribed =
                implementation == Implementation.OPEN_MPI
                        ? List.of("--allow-run-as-root", "--oversubscribe", "--bind-to", "none")
                        : List.of();
        return first(implementation, onPath(implementation.ownStarter, "mpirun"), folder)
                .map(starter -> with(List.of(starter.toString()), oversubscribed));
    }

    /** Compiles a C program against a library and returns it. */
    public Path compile(Path source, Path library, Path folder)
            throws SkippedException, IOException, InterruptedException {
        Path program = folder.resolve("mpi_sgemm");
        ChildCommand.Output output =
                Programs.run(
                        folder,
                        compiler.toString(),
                        "-O3",
                        "-march=native",
                        "-o",
                        program.toString(),
                        source.toString(),
                        library.toString(),
                        "-Wl,-rpath," + library.getParent(),
                        "-lm");
        if (!output.ok()) {
            throw new SkippedException("mpicc failed: " + output.lastLine());
        }
        return program;
    }

    /**
     * Ways to start one rank per core, best first: pinned to cores, to hardware threads where the
     * system counts those as cores, and not at all.
     */
    public List<List<String>> startCommands(int ranks) {
        String count = Integer.toString(ranks);
        String run = starter.toString();
        return switch (implementation) {
            case OPEN_MPI -> {
                List<String> base = List.of(run, "--allow-run-as-root", "-n", count);
                yield List.of(
                        with(base, "--bind-to", "core"),
                        with(base, "--use-hwthread-cpus", "--bind-to", "hwthread"),
                        with(base, "--oversubscribe", "--bind-to", "none"));
            }
            case MPICH -> {
                List<String> base = List.of(run, "-n", count);
                yield List.of(with(base, "-bind-to", "core"), base);
            }
        };
    }

    /** One rank on each host, where the environment says which hosts there are. */
    public List<String> startOnHosts(int ranks) {
        List<String> base = List.of(starter.toString(), "-n", Integer.toString(ranks));
        return switch (implementation) {
            case OPEN_MPI -> with(with(base, "--allow-run-as-root"), implementation.onePerHost());
            case MPICH -> with(base, implementation.onePerHost());
        };
    }

    private static List<String> with(List<String> base, String... more) {
        return with(base, List.of(more));
    }

    private static List<String> with(List<String> base, List<String> more) {
        return Stream.concat(base.stream(), more.stream()).toList();
    }
}
