package dev.weft.bench.peers;

import dev.weft.bench.measure.Shape;
import dev.weft.bench.measure.SkippedException;
import dev.weft.bench.peers.MpiProduct.Work;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The C program of MPI and OpenBLAS, compiled for this machine; {@link MpiProduct} is one that
 * runs. Immutable; any thread may call it.
 *
 * @param folder where it runs
 */
public record MpiProgram(Mpi mpi, OpenBlasLibrary library, Path program, Path folder) {

    private static final String SOURCE = "mpi_sgemm.c";

    /**
     * @throws SkippedException if this machine has no OpenBLAS or cannot compile MPI programs
     */
    public static MpiProgram compile(Path folder)
            throws SkippedException, IOException, InterruptedException {
        Optional<String> noOpenBlas = OpenBlasLibrary.unavailable();
        if (noOpenBlas.isPresent()) {
            throw new SkippedException("OpenBLAS: " + noOpenBlas.get());
        }
        OpenBlasLibrary library = OpenBlasLibrary.loaded();
        Mpi mpi = Mpi.find(folder);
        Path source = Programs.source(SOURCE, folder);
        return new MpiProgram(mpi, library, mpi.compile(source, library.file(), folder), folder);
    }

    /** What tables call it. */
    public String name() {
        return mpi.implementation().label() + " + " + library.name();
    }

    /** Starts one rank per core of this machine, in the best way that works here. */
    public MpiProduct start(int ranks, Work work, Shape shape)
            throws IOException, InterruptedException {
        return start(ranks, work, shape.words());
    }

    /**
     * @param words the sizes, as the program wants them
     */
    public MpiProduct start(int ranks, Work work, List<String> words)
            throws IOException, InterruptedException {
        List<List<String>> ways = mpi.startCommands(ranks);
        for (List<String> way : ways.subList(0, ways.size() - 1)) {
            try {
                return new MpiProduct(start(way, work, words), true);
            } catch (SteppedProcess.PeerException e) {
                // The next way may work.
                System.getLogger("dev.weft").log(System.Logger.Level.DEBUG, "not started", e);
            }
        }
        return new MpiProduct(start(ways.getLast(), work, words), false);
    }

    /** Starts one rank on each host. */
    public MpiProduct startOnHosts(int ranks, Work work, Shape shape)
            throws IOException, InterruptedException {
        return new MpiProduct(start(mpi.startOnHosts(ranks), work, shape.words()), false);
    }

    private SteppedProcess start(List<String> way, Work work, List<String> words)
            throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(way);
        command.addAll(List.of(program.toString(), work.label()));
        command.addAll(words);
        Map<String, String> environment = new LinkedHashMap<>();
        environment.put("OPENBLAS_NUM_THREADS", "1");
        library.coreType().ifPresent(type -> environment.put("OPENBLAS_CORETYPE", type));
        return SteppedProcess.started("the MPI program", command, environment, folder);
    }
}
